"""`bestarm run` for tables that are read in blocks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import bounds, catalog, live
from bestarm.bandits import Gaussian
from bestarm.cli.app import print_answer, say
from bestarm.cli.request import Request, accounted
from bestarm.cli.tables import Ids, PassBar, reading
from bestarm.core import Array, Pulls, Totals, namespace
from bestarm.draw.style import number
from bestarm.errors import ArmsError, BudgetWarning, InputError
from bestarm.play import Round, SparseRun, play_source
from bestarm.policies.streamed import BigProblem, Leaders, Streamed, StreamedState
from bestarm.rewards import Rewards
from bestarm.tables import Source, open_source
from bestarm.tables import opening as tables
from bestarm.tables.source import to_host

ONLY = "gse-lin-fwg"
NORMAL = 1.959964  # 97.5 % quantile of the normal distribution: intervals hold with 95 %


def is_big(path: str) -> bool:
    """Return whether a table is to be read in blocks."""
    return tables.in_blocks(path) and tables.shape(path)[0] > tables.SMALL


def _refuse(asked: Request) -> None:
    """Refuse what only works on a table that is read as a whole."""
    path, policy, model = asked.arms_file, asked.policy_name, asked.model_name
    rows = f"{path} has {tables.shape(path)[0]:,} rows, and above {tables.SMALL:,} a table is read in blocks"
    if policy not in (None, ONLY) or model not in (None, "linear"):
        given = f"--policy {policy}" if policy not in (None, ONLY) else f"--model {model}"
        raise InputError(f"{given} needs all arms in memory: {rows}; only --policy {ONLY} can, or give fewer rows")
    whole = {"--label": asked.label, "--categorical": asked.categorical, "--scale": asked.scale != "none"}
    whole |= {"--missing": asked.missing != "error", "--rounds": asked.rounds, "--report": asked.report_file}
    for option, value in whole.items():
        if value:
            raise InputError(f"{option} needs all arms in memory: {rows}; leave it out, or give fewer rows")


def run_big(asked: Request) -> None:
    """Find the best arm of a table of any length and print it."""
    _refuse(asked)
    observe: Any = None if asked.pull is None else asked.observer()
    read = reading(vars(asked), {"id_column", "feature", "exclude", "intercept"}, asked.simulate)
    source = open_source(asked.arms_file, read.pop("features", None), **read)
    total, ids = source.rows, Ids(source)
    elimination = catalog.policy(ONLY, **({} if asked.eta is None else {"eta": asked.eta}))
    policy = Streamed(elimination, switch=tables.SMALL)
    rewards = Rewards(elimination.model, asked.minimize)
    say(f"{total:,} arms, {source.columns} features, read in blocks")
    first = elimination.schedule.stages(total, asked.budget, int)[0].pulls
    if first < source.columns:
        say(
            f"{BudgetWarning.__name__}: {first} pulls in the first stage cannot determine {source.columns} dimensions; "
            "more budget, fewer features or a larger eta would help"
        )
    table = repr((Path(asked.arms_file).name, total, source.names)).encode()
    log, seed = asked.open_log(asked.about(table, policy))
    stages: list[dict[str, Any]] = []
    with PassBar() as bar:
        truth = None if asked.simulate is None else _Truth.of(bar, asked)
        names_of: Any = ids  # a sequence in all that is asked of it
        bandit = truth or _Lookup(None, names_of, observe, asked.noise_variance, rewards.better, rewards.allowed, log)
        if log is not None and log.count:
            bar.say(f"resuming: {log.count} rewards are in {log.path}")

        def watch(round: Round) -> None:
            stages.append(_stage(round, ids, rewards))
            bar.say(_stage_line(stages[-1], len(round.after.stages)))

        problem = BigProblem(bar.over(source), asked.budget, asked.noise_variance)
        with accounted(bandit, asked.budget, log):
            done = play_source(policy, bandit, problem, seed, watch)
        passes = bar.passes
    row = _row(done, asked, ids, rewards, elimination.eta) | {"passes": passes, "seed": seed}
    if truth is not None:
        row |= truth.verdict(done.arm, ids)
    counts = dict(zip(ids.of(done.rows), (int(n) for n in done.counts), strict=True))
    print_answer(row, {"counts": counts, "by_stage": stages}, asked.style)


class _Lookup(live.Live):
    """Real arms of a big table: the ids of a stage are looked up at once."""

    def pull(self, pulls: Pulls, taken: Any, rng: Any) -> Totals:
        assert isinstance(self.ids, Ids)
        self.ids.of(pulls.arms[pulls.times > 0])
        return super().pull(pulls, taken, rng)


@dataclass(frozen=True)
class _Truth:
    """A column of true means, of which only the best and those of pulled arms are looked up."""

    column: Source
    noise: Gaussian
    sign: int
    best: float
    row: int
    made: int = 0

    @classmethod
    def of(cls, bar: PassBar, asked: Request) -> "_Truth":
        """Find the best arm by one pass, which also checks the column."""
        variance = asked.noise_variance
        if variance is None:
            raise InputError("simulated rewards need --noise-variance")
        column = open_source(asked.arms_file, [str(asked.simulate)])
        sign = -1 if asked.minimize else 1
        best, row, bad = bar.over(column).sweep(_Best(sign), _better)
        if bad >= 0:
            raise ArmsError(f"{column.place(bad)}, column {asked.simulate!r}: expected a finite number to simulate")
        return cls(column, Gaussian(variance), sign, sign * best, row)

    def pull(self, pulls: Pulls, taken: Any, rng: Any) -> Totals:
        means = np.zeros(len(pulls.arms))
        some = np.flatnonzero(pulls.times)
        means[some] = self.sign * self.column.take(pulls.arms[some])[:, 0]
        return Totals(*self.noise.totals(means, pulls.times, rng))

    def verdict(self, arm: int, ids: Ids) -> dict[str, Any]:
        mean = float(self.column.take(np.array([arm]))[0, 0])
        return {"true_best": ids[self.row], "true_mean": mean, "regret": abs(self.best - mean)}


@dataclass(frozen=True)
class _Best:
    """Return the largest value of a column, its row, and the first row that is not finite or -1."""

    sign: int

    def __call__(self, block: Array, start: int) -> tuple[float, int, int]:
        xp = namespace(block)
        values = self.sign * to_host(xp.astype(block[:, 0], xp.float64))
        bad = np.flatnonzero(~np.isfinite(values))[:1]
        row = int(np.argmax(values))
        return float(values[row]), start + row, start + int(bad[0]) if len(bad) else -1


def _better(one: tuple[float, int, int], other: tuple[float, int, int]) -> tuple[float, int, int]:
    bad = one[2] if one[2] >= 0 else other[2]
    value, row, _ = other if other[0] > one[0] else one
    return value, row, bad


def _estimates(leaders: Leaders, ids: Ids, rewards: Rewards) -> list[dict[str, Any]]:
    found = []
    for arm, mean, error in zip(ids.of(leaders.rows), leaders.means, leaders.errors, strict=True):
        ends = [float(rewards.natural(mean + side * NORMAL * error)) for side in (-1, 1)]
        found.append({"arm": arm, "mean": float(rewards.natural(mean)), "low": min(ends), "high": max(ends)})
    return found


def _stage(round: Round, ids: Ids, rewards: Rewards) -> dict[str, Any]:
    before, after = round.before, round.after
    assert isinstance(before, StreamedState)
    pulled = round.pulls.times > 0
    arms = ids.of(round.pulls.arms[pulled])
    return {
        "stage": after.stage,
        "pulls": dict(zip(arms, (int(n) for n in round.pulls.times[pulled]), strict=True)),
        "arms": before.survivors,
        "kept": after.survivors,
        "ahead": _estimates(after.leaders, ids, rewards),
    }


def _stage_line(stage: dict[str, Any], stages: int) -> str:
    lead = stage["ahead"][0]
    spread = f"[{number(lead['low'])}, {number(lead['high'])}]"
    return (
        f"stage {stage['stage']}/{stages}: {sum(stage['pulls'].values()):,} pulls on {len(stage['pulls']):,} arms; "
        f"kept {stage['kept']:,} of {stage['arms']:,}; ahead: {lead['arm']} at {number(lead['mean'])} {spread}"
    )


def _row(done: SparseRun, asked: Request, ids: Ids, rewards: Rewards, eta: float) -> dict[str, Any]:
    arms, rank = int(done.state.problem.source.rows), int(done.state.rank)
    best, *others = _estimates(done.state.leaders, ids, rewards)
    gap = abs(best["mean"] - others[0]["mean"]) if others else None
    noise, bound = asked.noise_variance, None
    if gap and noise is not None and noise > 0 and rank > 0:
        bound = float(bounds.gse(arms, rank, asked.budget, gap, noise, min(eta, arms)))
    return {
        "arm": best["arm"],
        "estimate": best["mean"],
        "low": best["low"],
        "high": best["high"],
        "runner_up": others[0]["arm"] if others else None,
        "runner_up_estimate": others[0]["mean"] if others else None,
        "spent": int(done.counts.sum()),
        "budget": asked.budget,
        "arms": arms,
        "dimension": rank,
        "stages": len(done.state.stages),
        "gap": gap,
        "bound": bound,
    }
