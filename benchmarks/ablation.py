"""What each part of `auto` buys: the suite's instances with one part changed at a time, paired with the whole.

    python benchmarks/ablation.py --replications 500 -o results/ablation.csv

Every variant meets the same instances and rewards as the policies of `bestarm bench --suite default`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bestarm.bench import suite
from bestarm.bench.runner import world
from bestarm.bench.table import to_csv
from bestarm.errors import BestArmError
from bestarm.playing import play
from bestarm.policies.auto import Auto
from bestarm.simulate.chunks import CHUNK
from bestarm.simulate.intervals import paired
from bestarm.simulate.policies import PolicyRef
from bestarm.structures.hypotheses import KINDS, Line, OneOf, Scaling, SeparateMeans, Smooth


def without(*names: str) -> tuple[Any, ...]:
    """Return the kinds of hypotheses but some."""
    return tuple(kind for kind in KINDS if kind.name not in names)


RESIDUALS = tuple(kind.name for kind in KINDS if isinstance(kind, Line) and kind.residuals)
OWN = tuple(
    Line(f"{base}, own residual", base, intercept=base == "standard", residuals=(1.5, 6.0), residual="own")
    for base in ("centred", "standard")
)
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


def contests(chosen: suite.Suite, most: int) -> Iterator[suite.Contest]:
    """Yield the contests that can be made here and are small enough."""
    for contest in chosen.contests:
        try:
            if contest.instance.make(1, np.random.default_rng(0)).means.shape[-1] <= most:
                yield contest
        except BestArmError:
            continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="default")
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th contest")
    parser.add_argument("--arms", type=int, default=64, help="the largest number of arms")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    chosen = suite.load(given.suite)
    field = list(contests(chosen, given.arms))[:: given.every]
    chunks = range(-(-given.replications // CHUNK))
    jobs = [(name, contest, n) for contest in field for name in VARIANTS for n in chunks]
    found = Parallel(n_jobs=given.jobs, verbose=1)(
        delayed(outcomes)(VARIANTS[name], contest, chosen.seed, n) for name, contest, n in jobs
    )
    right: dict[tuple[str, str], list[Any]] = {}
    for (name, contest, _), one in zip(jobs, found, strict=True):
        right.setdefault((name, str(contest)), []).append(one)
    whole = {key: np.concatenate(parts) for key, parts in right.items()}
    rows = []
    for name in VARIANTS:
        mine, ours = (np.concatenate([whole[n, str(c)] for c in field]) for n in (name, "auto"))
        each = {str(c): float(whole[name, str(c)].mean() - whole["auto", str(c)].mean()) for c in field}
        middle, low, high = paired(mine, ours)
        worst = min(each, key=lambda cell: each[cell])
        rows.append(
            {"variant": name, "accuracy": float(mine.mean()), "difference": middle, "low": low, "high": high,
             "worst": each[worst], "worst_cell": worst, "best": max(each.values())}
        )  # fmt: skip
        print(f"{name:36s} {mine.mean():.3f}  {100 * middle:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]", flush=True)
    result = {"suite": chosen.name, "seed": chosen.seed, "replications": len(chunks) * CHUNK, "cells": len(field)}
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(to_csv([row | result for row in rows]), encoding="utf-8")


if __name__ == "__main__":
    main()
