"""What each part of `auto` buys, and what a variation would: paired with `auto` on the same instances and rewards.

    python benchmarks/ablation.py --replications 500 -o results/ablation.csv
    python benchmarks/ablation.py --suite fooled --variant "no arm apart" -o results/parts.csv
    python benchmarks/ablation.py --try auto:hedge=0.3 --cells randomized --cells static --replications 1000 --round 7

The first changes one part at a time, for docs/which-policy.md. The third tries one variation, a name of VARIANTS or a
policy as `bestarm bench --policy` takes it, and appends a row to docs/decisions/0007_auto_tried.csv. Instances and
rewards are those of `bestarm bench --suite default`.
"""

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bestarm.bench import suite
from bestarm.bench.runner import world
from bestarm.bench.table import to_csv
from bestarm.core import Problem
from bestarm.errors import BestArmError
from bestarm.playing import play
from bestarm.policies.auto import Auto, AutoState
from bestarm.policies.opinion import Opinion
from bestarm.simulate.chunks import CHUNK
from bestarm.simulate.intervals import paired
from bestarm.simulate.policies import PolicyRef, policy_of_text
from bestarm.structures.hypotheses import KINDS, Line, OneArm, OneOf, Scaling, SeparateMeans, Smooth

ROOT = Path(__file__).parent.parent
TRIED = ROOT / "docs" / "decisions" / "0007_auto_tried.csv"


def without(*names: str) -> tuple[Any, ...]:
    """Return the kinds of hypotheses but some."""
    return tuple(kind for kind in KINDS if kind.name not in names)


RESIDUALS = tuple(kind.name for kind in KINDS if isinstance(kind, Line) and kind.residuals)
OWN = tuple(
    Line(f"{base}, own residual", base, intercept=base == "standard", residuals=(1.5, 6.0), residual="own")
    for base in ("centred", "standard")
)


@dataclass(frozen=True)
class Moments(Auto):
    """`auto` that sees an arm apart by the moments of its mixture alone."""

    def _opinion(self, *given: Any) -> Opinion:
        return replace(super()._opinion(*given), lone=None)


@dataclass(frozen=True)
class NoLooks(Auto):
    """`auto` whose first pulls are a design alone."""

    def _looks(self, problem: Problem) -> bool:
        return False


@dataclass(frozen=True)
class Trusting(Auto):
    """`auto` that sets nothing aside."""

    def _settled(self, state: AutoState) -> AutoState:
        return state


VARIANTS = {
    "auto": Auto(),
    "linear only": Auto(kinds=tuple(k for k in KINDS if isinstance(k, Line) and not k.residuals)),
    "separate means only": Auto(kinds=(SeparateMeans(),)),
    "no product": Auto(kinds=tuple(k for k in KINDS if not (isinstance(k, OneOf) and k.line))),
    "no single feature": Auto(kinds=tuple(k for k in KINDS if k.exploring)),
    "single features explore, too": Auto(kinds=tuple(replace(k, exploring=True) for k in KINDS)),
    "no residuals": Auto(kinds=without(*RESIDUALS)),
    "no kernels": Auto(kinds=tuple(k for k in KINDS if not isinstance(k, Smooth))),
    "no line without intercept": Auto(kinds=without("linear", "linear, smooth residual")),
    "a residual of each arm's own, too": Auto(kinds=(*KINDS, *OWN)),
    "no hedge": Auto(hedge=0.0),
    "a hedge of .15": Auto(hedge=0.15),
    "no arm apart": Auto(kinds=tuple(k for k in KINDS if not isinstance(k, OneArm))),
    "an arm apart by its moments": Moments(),
    "no first looks": NoLooks(),
    "nothing set aside": Trusting(),
    "lines not tested": Auto(kinds=tuple(replace(k, tested=0.0) if isinstance(k, Line) else k for k in KINDS)),
    "one hypothesis decides": Auto(kept=1),
    "four rivals": Auto(rivals=4),
    "one rival at a time": Auto(rivals=1),
    "smallest scale 1": Auto(scaling=Scaling(least=1.0)),
    "first fifth by design": Auto(share=0.2),
    "50 steps": Auto(steps=50),
}


def outcomes(policy: Any, contest: suite.Contest, seed: int, number: int) -> Any:
    """Return who was right in a chunk of replications, as `bestarm bench` draws it."""
    cell = contest.cell(PolicyRef("auto"))
    bandit, stream = world(cell, seed, number, CHUNK)
    return bandit.correct(play(policy, stream, cell.budget, np.random.default_rng([seed, number])).arm)


def contests(chosen: suite.Suite, most: int, words: Sequence[str], every: int) -> list[suite.Contest]:
    """Return the contests that can be made here, are small enough and have one of some words in their names."""
    found = []
    for contest in chosen.contests:
        if words and not any(word in str(contest) for word in words):
            continue
        try:
            if contest.instance.make(1, np.random.default_rng(0)).means.shape[-1] <= most:
                found.append(contest)
        except BestArmError:
            continue
    return found[::every]


def measured(
    policies: Mapping[str, Any], field: Sequence[suite.Contest], seed: int, chunks: int, jobs: int
) -> dict[str, dict[str, Any]]:
    """Return who was right, `(replications,)`, by policy and contest."""
    work = [(name, contest, n) for contest in field for name in policies for n in range(chunks)]
    found = Parallel(n_jobs=jobs, verbose=1)(delayed(outcomes)(policies[name], c, seed, n) for name, c, n in work)
    right: dict[str, dict[str, list[Any]]] = {name: {str(contest): [] for contest in field} for name in policies}
    for (name, contest, _), one in zip(work, found, strict=True):
        right[name][str(contest)].append(one)
    return {name: {cell: np.concatenate(parts) for cell, parts in cells.items()} for name, cells in right.items()}


def compared(mine: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean paired difference over all contests, its interval, and the worst and the best contest."""
    each = {cell: float(mine[cell].mean() - ours[cell].mean()) for cell in mine}
    middle, low, high = paired(*(np.concatenate([one[cell] for cell in mine]) for one in (mine, ours)))
    worst = min(each, key=lambda cell: each[cell])
    accuracy = float(np.mean([mine[cell].mean() for cell in mine]))
    print(f"{accuracy:.3f}  {100 * middle:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]", flush=True)
    return {"accuracy": accuracy, "difference": middle, "low": low, "high": high,
            "worst": each[worst], "worst_cell": worst, "best": max(each.values())}  # fmt: skip


def policy(text: str) -> Any:
    """Return a variant by its name, or a policy as the command line names it."""
    return VARIANTS[text] if text in VARIANTS else policy_of_text(text).build()


def tried(given: argparse.Namespace, found: Mapping[str, Any], cells: int, replications: int) -> dict[str, Any]:
    """Return the row of a variation, in percentage points."""
    here = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    words = f" with {', '.join(given.cells)}" if given.cells else ""
    note = f"from {100 * found['worst']:+.1f} ({found['worst_cell']}) to {100 * found['best']:+.1f}"
    difference, half = 100 * found["difference"], 50 * (found["high"] - found["low"])
    return {"round": given.round, "tried": given.variation, "cells": f"{cells} of {given.suite}{words}",
            "replications": str(replications), "difference": round(difference, 1), "half": round(half, 1),
            "against": given.against, "outcome": given.outcome, "note": note,
            "made": "benchmarks/ablation.py", "commit": here.stdout.strip()}  # fmt: skip


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file, whose rows stay as they are."""
    text = to_csv([dict(row)])
    with path.open("a", encoding="utf-8") as file:
        file.write(text if not file.tell() else text.partition("\n")[2])


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="default")
    parser.add_argument("--seed", type=int, help="another one than the suite's")
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th contest")
    parser.add_argument("--cells", action="append", default=[], help="only contests with one of these words")
    parser.add_argument("--arms", type=int, default=64, help="the largest number of arms")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--variant", action="append", default=[], help="only this row of the table; all by default")
    parser.add_argument("--try", dest="variation", help="one variation, such as auto:hedge=0.3")
    parser.add_argument("--against", default="auto", help="what it is compared with")
    parser.add_argument("--round", type=int, default=0, help="of the row")
    parser.add_argument("--outcome", choices=["kept", "dropped"], default="dropped", help="of the row")
    parser.add_argument("-o", "--output", type=Path, help="where the table goes; of a variation, where a row is added")
    given = parser.parse_args()
    if not given.variation and not given.output:
        parser.error("give --try, or -o for the table of all parts")
    return given


def main() -> None:
    given = options()
    chosen = suite.load(given.suite)
    seed = chosen.seed if given.seed is None else given.seed
    field, chunks = contests(chosen, given.arms, given.cells, given.every), -(-given.replications // CHUNK)
    names = (
        [given.against, given.variation]
        if given.variation
        else list(dict.fromkeys(["auto", *(given.variant or VARIANTS)]))
    )
    right = measured({name: policy(name) for name in names}, field, seed, chunks, given.jobs)
    if given.variation:
        row = tried(given, compared(right[given.variation], right[given.against]), len(field), chunks * CHUNK)
        append(given.output or TRIED, row)
        return
    result = {"suite": chosen.name, "seed": seed, "replications": chunks * CHUNK, "cells": len(field)}
    rows = [{"variant": name} | compared(right[name], right["auto"]) | result for name in names]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(to_csv(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
