"""What happened in a run, as tidy data: nothing here draws, prints or decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

import numpy as np

from bestarm import bounds
from bestarm.core import Problem, Tally, policy_of
from bestarm.linalg import Candidates, rank, tally
from bestarm.play import Round, Run
from bestarm.structures.words import believes

NORMAL = 1.959964  # 97.5 % quantile of the normal distribution: intervals hold with 95 %


@dataclass(frozen=True)
class Estimate:
    """An arm's estimated mean with its 95 % interval; the interval is NaN where the model gives none."""

    arm: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class StageAccount:
    """One stage: what was pulled, how the arms compared, who stayed."""

    number: int
    pulls: dict[str, int]
    estimates: tuple[Estimate, ...]  # best first
    kept: tuple[str, ...]

    @property
    def eliminated(self) -> tuple[str, ...]:
        return tuple(e.arm for e in self.estimates if e.arm not in self.kept)


@dataclass(frozen=True)
class Account:
    """A whole run. `bound` is the theorem's bound on the error at `gap`, the gap as estimated (or known).

    `estimates` are the last ones, best first: of the arms in the last stage, or of all where there are no stages.
    `belief` is the weight of every kind of hypothesis, where the policy has several.
    """

    arms: int
    dimension: int
    budget: int
    spent: int
    counts: dict[str, int]
    stages: tuple[StageAccount, ...]
    best: Estimate
    runner_up: Estimate | None
    gap: float | None
    bound: float | None
    rounds: int = 0
    estimates: tuple[Estimate, ...] = ()
    belief: dict[str, float] = field(default_factory=dict)

    @property
    def believes(self) -> str | None:
        """What is believed of the means, in words; None where the policy holds one model for true."""
        return believes(self.belief) if self.belief else None

    def row(self) -> dict[str, Any]:
        """Return the answer as one flat row."""
        words = {} if self.believes is None else {"believes": self.believes}
        stages = {"stages": len(self.stages)} if self.stages else {}
        return {
            "arm": self.best.arm,
            "estimate": self.best.mean,
            "low": self.best.low,
            "high": self.best.high,
            "runner_up": self.runner_up.arm if self.runner_up else None,
            "runner_up_estimate": self.runner_up.mean if self.runner_up else None,
            "spent": self.spent,
            "budget": self.budget,
            "arms": self.arms,
            "dimension": self.dimension,
            **stages,
            "rounds": self.rounds,
            "gap": self.gap,
            "bound": self.bound,
            **words,
        }


class Accountant:
    """Listens to `play` and keeps the books."""

    def __init__(self, policy: Any, model: Any, ids: Sequence[str], natural: Callable[[float], float] = float) -> None:
        self.policy = policy_of(policy)
        self.model, self.ids, self.natural = model, ids, natural
        self.stages: list[StageAccount] = []
        self.known: Tally | None = None
        self.rounds = 0

    def watch(self, round: Round) -> StageAccount | None:
        """Take note of a round; return its account if it was a stage of an elimination."""
        now = tally(round.pulls, round.totals, len(self.ids))
        self.known = now if self.known is None else self.known + now
        self.rounds += 1
        standing = self.policy.describe(round.after)
        compared = standing.estimates() if standing.stages else None
        if compared is None or standing.active is None:
            return None
        pulled = {self.ids[a]: int(n) for a, n in enumerate(now.counts) if n}
        rows = zip(compared.arms, compared.means, compared.errors, strict=True)
        kept = tuple(self.ids[a] for a in np.flatnonzero(standing.active).tolist())
        self.stages.append(StageAccount(len(self.stages) + 1, pulled, tuple(starmap(self._estimate, rows)), kept))
        return self.stages[-1]

    def close(self, problem: Problem, run: Run) -> Account:
        """Return the account of the whole run."""
        compared = self.stages[-1].estimates if self.stages else self._pooled(problem)
        arm, standing = self.ids[int(run.arm)], self.policy.describe(run.state)
        named = {estimate.arm: estimate for estimate in compared}
        best = named.get(arm, Estimate(arm, np.nan, np.nan, np.nan))
        others = [estimate for estimate in compared if estimate.arm != arm]
        runner_up = others[0] if others else None
        gap = abs(best.mean - runner_up.mean) if runner_up else None
        dimension = int(rank(Candidates.of(problem.features).coordinates))
        return Account(
            arms=problem.arms,
            dimension=dimension,
            budget=problem.budget,
            spent=int(run.counts.sum()),
            counts={self.ids[a]: int(n) for a, n in enumerate(run.counts)},
            stages=tuple(self.stages),
            best=best,
            runner_up=runner_up,
            gap=gap,
            bound=self._bound(problem, dimension, gap, standing.eta),
            rounds=self.rounds,
            estimates=compared,
            belief=standing.weights(),
        )

    def _estimate(self, arm: Any, mean: Any, error: Any) -> Estimate:
        ends = (self.natural(float(mean - NORMAL * error)), self.natural(float(mean + NORMAL * error)))
        return Estimate(self.ids[int(arm)], self.natural(float(mean)), min(ends), max(ends))

    def _pooled(self, problem: Problem) -> tuple[Estimate, ...]:
        """Return estimates from all data, for policies that do not go by stages."""
        if self.known is None:
            return ()
        candidates = Candidates.of(problem.features)
        fit = self.model.fit(candidates, self.known)
        error = self.model.standard_error(candidates, self.known, fit, problem.noise_variance)
        order = np.argsort(-fit.score, kind="stable")
        return tuple(self._estimate(i, fit.mean[i], error[i]) for i in order)

    def _bound(self, problem: Problem, dimension: int, gap: float | None, eta: float | None) -> float | None:
        noise = self._noise(problem)
        if not gap or eta is None or noise is None or noise <= 0 or dimension < 1 or not np.isfinite(gap):
            return None
        return float(bounds.gse(problem.arms, dimension, problem.budget, gap, noise, min(eta, problem.arms)))

    def _noise(self, problem: Problem) -> float | None:
        """Return the noise variance: as told, or from the scatter of repeats of the same arm."""
        if problem.noise_variance is not None or self.known is None:
            return problem.noise_variance
        counts = np.maximum(self.known.counts, 1)
        freedom = float(np.sum(counts - 1))
        scatter = float(np.sum(self.known.squares - self.known.sums**2 / counts))
        return scatter / freedom if freedom > 0 else None
