"""What a change did to a policy: results of the same cells from two trees, paired by replication.

    python benchmarks/before_after.py BEFORE AFTER --suite fooled
    python benchmarks/before_after.py BEFORE AFTER --suite heldout-5 --suite heldout-6 --policy auto -o changed.csv

BEFORE and AFTER are folders that `bestarm bench -o` or `bestarm.bench.run(cells, .., cache=folder)` keeps, each made by
its own tree with the same seed; a folder may have one folder for each suite in it, of its name. They are only read, so
one that is still being written will do. A cell fails where the whole 95 % interval lies below -2 points; where the true
difference is just that, one in 40 does by chance. The interval of a suite's mean takes its cells as drawn from many.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from bestarm.bench import suite
from bestarm.bench.store import from_json
from bestarm.bench.table import to_csv
from bestarm.bench.verdict import BY_CHANCE, FAILING
from bestarm.errors import BestArmError, InputError
from bestarm.simulate.intervals import paired
from bestarm.simulate.policies import Ref, policy_of_text


@dataclass(frozen=True)
class Kept:
    """Results that a tree kept: the seed, and who was right in each chunk of each cell."""

    seed: int
    right: Mapping[str, Mapping[int, Any]]

    @classmethod
    def read(cls, folder: Path, name: str) -> "Kept":
        """Return what is in a folder, or in the one of a suite's `name` in it."""
        path = next((p for p in (folder / name / "blocks.jsonl", folder / "blocks.jsonl") if p.is_file()), None)
        if path is None:
            raise InputError(f"there are no results in {folder}, nor in {folder / name}")
        data = path.read_bytes()
        lines = data[: data.rfind(b"\n") + 1].decode().splitlines()  # the last may be half written
        right: dict[str, dict[int, Any]] = {}
        for line in lines[1:]:
            chunk = from_json(json.loads(line))
            right.setdefault(chunk.cell, {})[chunk.number] = chunk.correct
        return cls(json.loads(lines[0])["seed"], right)

    def common(self, other: "Kept", cell: str) -> tuple[Any, Any]:
        """Return who was right here and there, in the replications of a cell that both have."""
        mine, theirs = (kept.right.get(cell, {}) for kept in (self, other))
        both = sorted(mine.keys() & theirs.keys())
        sizes = [min(len(mine[n]), len(theirs[n])) for n in both]
        one, two = ([chunks[n][:size] for n, size in zip(both, sizes, strict=True)] for chunks in (mine, theirs))
        return np.concatenate([np.zeros(0, bool), *one]), np.concatenate([np.zeros(0, bool), *two])


def compared(before: Kept, after: Kept, contests: Sequence[suite.Contest], policy: Ref) -> list[dict[str, Any]]:
    """Return a row for each contest that both have."""
    if before.seed != after.seed:
        raise InputError(f"seeds {before.seed} and {after.seed} make other worlds, so nothing is paired")
    rows = []
    for contest in contests:
        old, new = before.common(after, contest.cell(policy).key)
        if len(old):
            middle, low, high = paired(new, old)
            rows.append({"group": contest.group, "family": contest.family, "cell": str(contest),
                         "replications": len(old), "before": float(old.mean()), "after": float(new.mean()),
                         "difference": middle, "low": low, "high": high, "fails": high < FAILING})  # fmt: skip
    return rows


def pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean difference over cells, its interval by Student's t, cells as units, and how many cells fail."""
    each = np.array([row["difference"] for row in rows])
    spread = float(np.std(each, ddof=1)) if len(each) > 1 else math.inf
    half = float(stats.t.ppf(0.975, max(len(each) - 1, 1))) * spread / math.sqrt(len(each))
    middle = float(each.mean())
    return {"cells": len(rows), "difference": middle, "low": middle - half, "high": middle + half,
            "worst": float(each.min()), "best": float(each.max()), "failing": sum(row["fails"] for row in rows),
            "failing_by_chance": BY_CHANCE * len(rows)}  # fmt: skip


def points(row: Mapping[str, Any]) -> str:
    """Return a difference and its interval in percentage points."""
    return f"{100 * row['difference']:+6.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"


def show(name: str, rows: Sequence[Mapping[str, Any]], missing: int) -> None:
    """Print the cells of a suite, those that fail first, and what they come to."""
    for row in sorted(rows, key=lambda row: (not row["fails"], row["difference"])):
        verdict = "  fails" if row["fails"] else ""
        shown = f"{row['before']:.3f} {row['after']:.3f}  {points(row):24}"
        print(f"{name:14} {row['family'][:34]:34} {shown} n={row['replications']:<5} {row['cell']}{verdict}")
    every = pooled(rows)
    print(f"{name}: {len(rows)} cells, {missing} not in both; mean {points(every)}, cells as units; "
          f"{every['failing']} fail, {every['failing_by_chance']:.1f} would were all at -2 points\n")  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--suite", action="append", required=True, help="a name, or a JSON file (repeatable)")
    parser.add_argument("--policy", default="auto")
    parser.add_argument("-o", "--output", type=Path, help="keep the cells as CSV")
    given = parser.parse_args(words)
    table = []
    for name in given.suite:
        try:
            chosen, policy = suite.load(name), policy_of_text(given.policy)
            kept = [Kept.read(folder, chosen.name) for folder in (given.before, given.after)]
            rows = compared(*kept, chosen.contests, policy)
        except BestArmError as error:
            parser.error(str(error))
        if not rows:
            parser.error(f"no cell of {chosen.name} with {given.policy} is in both folders")
        show(chosen.name, rows, len(chosen.contests) - len(rows))
        table += [{"suite": chosen.name, **row} for row in rows]
    if given.output:
        given.output.write_text(to_csv(table), encoding="utf-8")


if __name__ == "__main__":
    main()
