"""Does more budget never give a worse answer? The same worlds with several budgets, paired by replication.

    python benchmarks/more_budget.py --replications 1000 -o results/more-budget

Worlds and rewards are those of the seed, whatever the budget, so a difference is due to the budget alone. A pair of
budgets is marked where the whole 95 % interval of the difference lies below 0: where both are equally good in truth,
one in 40 is by chance. Killed, it goes on from what is kept.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import bench
from bestarm.bench.table import to_csv
from bestarm.simulate.intervals import paired

CELLS: Mapping[str, tuple[Mapping[str, Any], tuple[int, ...]]] = {
    "needle": ({}, (64, 128, 256, 640)),
    "hill": ({}, (100, 200, 400)),
    "useless": ({}, (2000, 4000)),
    "clicks": ({}, (5000, 10_000)),
    "functions": ({"K": 64, "d": 5}, (96, 192, 384)),  # a line
}


def cells(policy: str, worlds: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the cells of each world, budgets rising."""
    return {
        world: [cell for b in budgets for cell in bench.grid([bench.instance(world, params)], [policy], b)]
        for world, (params, budgets) in CELLS.items()
        if not worlds or world in worlds
    }


def compared(groups: Mapping[str, Sequence[Any]], right: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each pair of budgets of a world; `right` says who was right by the key of a cell."""
    rows = []
    for group in groups.values():
        for less, more in combinations([cell for cell in group if cell.key in right], 2):
            one, two = right[less.key], right[more.key]
            middle, low, high = paired(two, one)
            rows.append({"instance": str(less.instance), "policy": str(less.policy), "replications": len(one),
                         "budget": less.budget, "more": more.budget, "accuracy": float(one.mean()),
                         "more_accuracy": float(two.mean()), "difference": middle, "low": low, "high": high,
                         "worse": high < 0})  # fmt: skip
    return rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--world", action="append", default=[], choices=list(CELLS), help="only this (repeatable)")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument(
        "-o", "--output", type=Path, help="keep results here, go on from them, and write more_budget.csv"
    )
    given = parser.parse_args(words)
    groups = cells(given.policy, given.world)
    every = [cell for group in groups.values() for cell in group]
    done = bench.run(every, given.replications, given.seed, given.jobs, given.output, progress=True)
    right = {key: np.concatenate([chunk.correct for chunk in chunks]) for key, chunks in done.chunks.items()}
    rows = compared(groups, {key: one[: given.replications] for key, one in right.items()})
    for row in rows:
        points = f"{100 * row['difference']:+6.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
        print(f"{row['instance']:24} B = {row['budget']:5} {row['accuracy']:.3f}   B = {row['more']:5} "
              f"{row['more_accuracy']:.3f}   {points}{'  WORSE' if row['worse'] else ''}")  # fmt: skip
    print(f"{sum(row['worse'] for row in rows)} of {len(rows)} pairs of budgets are surely worse with more; "
          f"{len(rows) / 40:.1f} would be by chance were all equal")  # fmt: skip
    for key, why in done.failures.items():
        print(f"failed: {key}: {why}")
    if given.output:
        (given.output / "more_budget.csv").write_text(to_csv(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
