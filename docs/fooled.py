"""Write the tables and the figure of docs/fooled.md again, from what was measured.

    python docs/fooled.py [results]

Reads these folders, where they are, and keeps the numbers in docs/fooled.csv, from which the page is filled between its
markers. OTHER is a tree before the change of `auto`, and RIVALS a `--policy` for each name in docs/fooled_rivals.txt:

    bestarm bench --suite fooled --rival-from 500 --replications 1000 RIVALS -o results/fooled
    bestarm bench --suite heldout-7 --rival-from 500 --replications 1000 RIVALS -o results/heldout-7
    PYTHONPATH=OTHER/src bestarm bench --suite fooled --judge auto --policy uniform -o results/before/fooled
    bestarm bench --suite SUITE --judge auto --policy uniform --replications 250 -o results/after/SUITE
    PYTHONPATH=OTHER/src bestarm bench --suite SUITE .. -o results/before/SUITE    # for each earlier suite
    python -m benchmarks.whole_tables --policy after=auto -o results/after-whole.csv
    python -m benchmarks.whole_tables --gp -o results/whole.csv
    PYTHONPATH=OTHER/src:. python -m benchmarks.whole_tables --policy before=auto -o results/whole-before.csv
    python benchmarks/ablation.py --suite fooled --arms 100 --variant "no arm apart" .. -o results/fooled-parts.csv
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.bench import suite
from bestarm.bench.table import read_csv, to_csv
from bestarm.simulate.policies import PolicyRef

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.before_after import Kept  # noqa: E402
from benchmarks.whole_tables import GP, compared, read  # noqa: E402

PAGE, FIGURE, NUMBERS = HERE / "fooled.md", HERE / "fooled.png", HERE / "fooled.csv"
RIVALS = HERE / "fooled_rivals.txt"
SUITES = ("fooled", "heldout-7")
FIRST = 500  # replications by which the best rival is chosen
GROUPS = ("smooth", "kernels", "lines", "switches")


def cells(results: Path, name: str) -> list[dict[str, Any]]:
    """Return a row a cell of a suite: `auto` now, before, and the best rival as later replications have it."""
    folder, chosen = results / name, suite.load(name)
    if not (folder / "blocks.jsonl").exists():
        return []
    now = Kept.read(folder, name)
    earlier = results / "before" / name / "blocks.jsonl"
    before = Kept.read(results / "before", name) if earlier.exists() else None
    rivals = RIVALS.read_text(encoding="utf-8").split()
    return [row for contest in chosen.contests if (row := _cell(contest, name, now, before, rivals))]


def _cell(
    contest: suite.Contest, name: str, now: Kept, before: Kept | None, rivals: Sequence[str]
) -> dict[str, Any] | None:
    right = {policy: _all(now, contest.cell(PolicyRef(policy)).key) for policy in ("auto", *rivals)}
    mine = right.pop("auto")
    ran = {policy: one for policy, one in right.items() if len(one) >= FIRST}
    if len(mine) <= FIRST or not ran:
        return None
    best = max(ran, key=lambda policy: float(ran[policy][:FIRST].mean()))
    count = min(len(mine), len(ran[best]))
    row = {"suite": name, "family": contest.family, "cell": str(contest), "replications": count - FIRST}
    row |= {"auto": float(mine[FIRST:count].mean())}
    row |= {"rival": best, "rival_accuracy": float(ran[best][FIRST:count].mean())}
    row |= _apart("difference", mine[FIRST:count], ran[best][FIRST:count])
    if before is not None:
        old = _all(before, contest.cell(PolicyRef("auto")).key)
        if len(old):
            row |= {"before": float(old.mean()), "before_replications": len(old)}
            row |= _apart("gain", mine[: len(old)], old)
    return row


def _all(kept: Kept, cell: str) -> Any:
    """Return who was right in the replications of a cell, from the first on without a gap."""
    chunks = kept.right.get(cell, {})
    found = [chunks[n] for n in range(len(chunks)) if n in chunks]
    return np.concatenate(found) if found else np.zeros(0, bool)


def _apart(name: str, one: Any, two: Any) -> dict[str, float]:
    """Return the mean paired difference and half of its 95 % interval."""
    off = np.asarray(one, dtype=float) - np.asarray(two, dtype=float)
    return {name: float(off.mean()), f"{name}_half": 1.96 * float(off.std(ddof=1)) / len(off) ** 0.5}


def changed(results: Path) -> list[dict[str, Any]]:
    """Return a row for each suite that both trees ran: the mean change of `auto`, its interval and the worst cell."""
    rows = []
    for name in suite.names():
        if not all((results / when / name / "blocks.jsonl").exists() for when in ("before", "after")):
            continue
        one, two = (Kept.read(results / when, name) for when in ("before", "after"))
        each = {}
        for contest in suite.load(name).contests:
            old, new = one.common(two, contest.cell(PolicyRef("auto")).key)
            if len(old):
                each[str(contest)] = _apart("difference", new, old) | {"count": len(old)}
        if each:
            rows.append({"suite": "changed", "of": name, "cells": len(each), **_together(each)})
    return rows


def _together(each: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return the mean over cells, its interval, how many cells fail, and the worst."""
    off = np.array([one["difference"] for one in each.values()])
    half = float(np.sqrt(np.sum([one["difference_half"] ** 2 for one in each.values()]))) / len(each)
    worst = min(each, key=lambda cell: each[cell]["difference"])
    return {"replications": int(min(one["count"] for one in each.values())), "difference": float(off.mean()),
            "difference_half": half, "failing": sum(fails(one) for one in each.values()), "cell": worst,
            "gain": each[worst]["difference"], "gain_half": each[worst]["difference_half"]}  # fmt: skip


def changes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of what the change did to each suite."""
    head = (
        "suite",
        "cells",
        "replications",
        "mean change, pp (95 %)",
        "cells that fail",
        "worst cell, pp (95 %)",
        "which",
    )
    lines = [_row(head), _row(["---"] * len(head))]
    for row in rows:
        first = [str(row[key]) for key in ("of", "cells", "replications")]
        lines.append(
            _row([*first, points(row, "difference"), str(row["failing"]), points(row, "gain"), str(row["cell"])])
        )
    return lines


def whole(results: Path) -> list[dict[str, Any]]:
    """Return how often the named arm of whole tables is in the top 1 %, beside a Gaussian process."""
    rows = read(results / file for file in ("whole.csv", "whole-before.csv", "after-whole.csv"))
    known = {row["table"]: row["group"] for row in rows.values()}
    chosen = {group: {name for name, mine in known.items() if mine == group} for group in GROUPS}
    lines = compared(rows, {group: some for group, some in chosen.items() if some})
    return [{"suite": "whole tables", **line} for line in lines]


def filled(page: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with `lines` between the markers of that name."""
    start, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
    head, found, rest = page.partition(start)
    if not found:  # the page has no such table
        return page
    return head + start + "\n".join(lines) + "\n" + end + rest.partition(end)[2]


def points(row: Mapping[str, Any], name: str) -> str:
    """Return a difference in points with its interval."""
    if row.get(name) in (None, ""):
        return ""
    middle, half = 100 * float(row[name]), 100 * float(row[f"{name}_half"])
    return f"{middle:+.1f} ± {half:.1f}"


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of a suite, those furthest behind their rival first."""
    lines = [
        "| cell | before | `auto` | gain, pp | best rival | its accuracy | difference, pp |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: float(row["difference"])):
        before = f"{float(row['before']):.3f}" if row.get("before") not in (None, "") else ""
        apart = points(row, "difference") + (" **fails**" if fails(row) else "")
        now, theirs = (f"{float(row[key]):.3f}" for key in ("auto", "rival_accuracy"))
        name = f"{row['family']}: {row['cell']}"
        lines.append(_row([name, before, now, points(row, "gain"), row["rival"], theirs, apart]))
    return lines


def _row(found: Iterable[str]) -> str:
    return f"| {' | '.join(found)} |"


def fails(row: Mapping[str, Any]) -> bool:
    """Return whether the whole interval of the difference to the rival lies below −2 points."""
    return float(row["difference"]) + float(row["difference_half"]) < -0.02


def said(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on a suite."""
    behind = [row for row in rows if fails(row)]
    mean = 100 * float(np.mean([float(row["difference"]) for row in rows]))
    gains = [float(row["gain"]) for row in rows if row.get("gain") not in (None, "")]
    worse = f"; {100 * float(np.mean(gains)):+.1f} points against `auto` before" if gains else ""
    chance = 0.025 * len(rows)
    return (
        f"{len(rows)} cells, {int(rows[0]['replications'])} replications each: {len(behind)} fail, where {chance:.1f} "
        f"would by chance if all were just 2 points behind; {mean:+.1f} points in the mean against the best rival of "
        f"each cell{worse}."
    )


def top(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of whole tables."""
    head = ("tables", "B", "policy", "draws", "top 1 %", "to the Gaussian process, pp (95 %)", "regret")
    lines = [_row(head), _row(["---"] * len(head))]
    for row in rows:
        apart = ""
        if row["policy"] != GP and row.get("top_difference") not in (None, ""):
            middle, low, high = (100 * float(row[key]) for key in ("top_difference", "top_low", "top_high"))
            apart = f"{middle:+.1f} [{low:+.1f}, {high:+.1f}]"
        first, regret = f"{float(row['top']):.3f}", f"{float(row['regret']):.3f}"
        lines.append(_row(map(str, [row["table"], row["budget"], row["policy"], row["draws"], first, apart, regret])))
    return lines


def parts(path: Path) -> list[str]:
    """Return the table of what each part buys."""
    lines = ["| without | mean accuracy | difference (95 %), pp | worst cell |", "|---|---|---|---|"]
    for row in read_csv(path):
        low, high = (100 * float(row[key]) for key in ("low", "high"))
        apart = f"{100 * float(row['difference']):+.1f} [{low:+.1f}, {high:+.1f}]"
        worst = f"{100 * float(row['worst']):+.1f} ({row['worst_cell']})"
        lines.append(_row([row["variant"], f"{float(row['accuracy']):.3f}", apart, worst]))
    return lines


def draw(rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw `auto` before and now, and the best rival, for the cells of `fooled`."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = sorted(rows, key=lambda row: float(row["auto"]) - float(row.get("before") or row["auto"]))
    figure, ax = pyplot.subplots(figsize=(8, 0.32 * len(rows) + 1))
    for place, row in enumerate(rows):
        now, old = float(row["auto"]), float(row.get("before") or row["auto"])
        ax.plot([old, now], [place, place], color="#9aa5b1", lw=2, zorder=1)
        ax.scatter(old, place, color="#9aa5b1", zorder=2, label="auto before" if not place else None)
        ax.scatter(now, place, color="#0b6bcb", zorder=3, label="auto" if not place else None)
        ax.scatter(float(row["rival_accuracy"]), place, marker="|", s=160, color="#d1622b", zorder=4,
                   label="best rival of the cell" if not place else None)  # fmt: skip
    names = [f"{row['family']}, B = {str(row['cell']).rpartition('B=')[2]}" for row in rows]
    ax.set_yticks(range(len(rows)), names, fontsize=8)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("how often the best arm is named")
    ax.legend(loc="lower right", fontsize=8, frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "results")
    kept = read_csv(NUMBERS) if NUMBERS.exists() else []
    found: list[Mapping[str, Any]] = []
    for name in SUITES:
        found += cells(results, name) or [row for row in kept if row["suite"] == name]
    moved = changed(results) or [row for row in kept if row["suite"] == "changed"]
    tables = whole(results) or [row for row in kept if row["suite"] == "whole tables"]
    NUMBERS.write_text(to_csv([*found, *moved, *tables]), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    for name in SUITES:
        rows = [row for row in found if row["suite"] == name]
        if rows:
            page = filled(page, name, [said(rows), "", *table(rows)])
    if moved:
        page = filled(page, "changed", changes(moved))
    if tables:
        page = filled(page, "whole", top(tables))
    if (results / "fooled-parts.csv").exists():
        page = filled(page, "parts", parts(results / "fooled-parts.csv"))
    PAGE.write_text(page, encoding="utf-8")
    if fooled := [row for row in found if row["suite"] == "fooled"]:
        draw(fooled)


if __name__ == "__main__":
    main()
