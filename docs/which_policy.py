"""Write the tables and the figure of docs/which-policy.md again, from what `make bench-default` measured.

    python docs/which_policy.py [results]

Reads the folders below, results/bench-default and results/ablation.csv where they are, keeps the numbers in
docs/which_policy.csv and docs/which_policy_ablation.csv, and fills the page between its markers. Besides
`make bench-default` and `benchmarks/ablation.py`, these fill the folders (worst.json has the six cells of
`default` that ten rounds cost most):

    bestarm bench --suite heldout-6 --replications 1000 -o results/bench-heldout-6
    bestarm bench --suite heldout-5 --replications 1000 -o results/bench-heldout-5
    bestarm bench --suite heldout-4 --replications 1000 -o results/bench-heldout-4
    bestarm bench --suite default --judge auto:rounds=10 --policy auto --replications 1000 -o results/rounds-10
    bestarm bench --suite worst.json --judge auto:rounds=10 --policy auto -o results/rounds-10-worst
    bestarm bench --suite heldout-6 --judge auto:rounds=10 --policy auto --replications 500 -o results/heldout-6-rounds
    bestarm bench --suite heldout-5 --judge auto:rounds=10 --policy auto --replications 500 -o results/heldout-5-rounds
    bestarm bench --suite default --judge gse-auto --policy gse-lin-fwg --policy od-linbai -o results/gse-auto
"""

import sys
from pathlib import Path
from typing import Any

from bestarm.bench.figures import draw_suite
from bestarm.bench.table import read_csv, to_csv
from bestarm.bench.verdict import distances

HERE = Path(__file__).parent
PAGE, FIGURE = HERE / "which-policy.md", HERE / "which_policy.png"
CONTESTS, ABLATION = HERE / "which_policy.csv", HERE / "which_policy_ablation.csv"
SUITES = (
    "heldout-6",
    "heldout-5",
    "heldout-4",
)  # each fixed before a change of the default policy and run after it
FOLDERS = {"default": "bench-default", **{name: f"bench-{name}" for name in SUITES}, "gse-auto": "gse-auto"}
ROUNDS = {
    "10": "rounds-10",
    "10, where most was lost": "rounds-10-worst",
    "10, on `heldout-6`": "heldout-6-rounds",
    "10, on `heldout-5`": "heldout-5-rounds",
    "5": "rounds-5",
    "3": "rounds-3",
}
KEPT = ("group", "family", "instance", "budget", "cell", "replications", "policy", "accuracy", "low", "high")
OTHERS = ("rival", "fixed", "halving", "process")
KEPT += tuple(name + end for name in OTHERS for end in ("", "_accuracy", "_difference", "_low", "_high"))

Rows = list[dict[str, Any]]


def points(value: float | None) -> str:
    """Return a share as percentage points with a sign."""
    return "" if value is None else f"{100 * value:+.1f}"


def collect(results: Path) -> dict[str, Rows]:
    """Return the contests of every verdict: those measured in `results`, and for the rest those that are kept."""
    known: dict[str, Rows] = {}
    for row in read_csv(CONTESTS) if CONTESTS.exists() else []:
        known.setdefault(row["verdict"], []).append(row)
    for name, folder in {**FOLDERS, **{f"rounds {count}": folder for count, folder in ROUNDS.items()}}.items():
        if (results / folder / "table.csv").exists():
            measured = read_csv(results / folder / "table.csv")
            known[name] = [{"verdict": name} | {key: row[key] for key in KEPT} for row in measured]
    return known


def summary(rows: Rows) -> str:
    """Return the table of groups."""
    lines = [
        f"{rows[0]['replications']} replications a cell, judged policy `{rows[0]['policy']}`.",
        "",
        "| group | cells | won | within 1 pp | within 3 pp | mean, pp | worst, pp | to halving: mean, worst | "
        "to a Gaussian process: mean, worst |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in [distances(rows, group) for group in [*dict.fromkeys(row["group"] for row in rows), None]]:
        lines.append(
            f"| {row['group']} | {row['contests']} | {row['won']} | {row['within_1']} ({row['within_1_point']}) | "
            f"{row['within_3']} ({row['within_3_point']}) | {points(row['mean'])} | {points(row['worst'])} | "
            f"{points(row['halving_mean'])}, {points(row['halving_worst'])} | "
            f"{points(row['process_mean'])}, {points(row['process_worst'])} |"
        )
    return "\n".join(lines)


def cells(contests: Rows) -> str:
    """Return the table of cells, the hardest first."""
    lines = ["| cell | `auto` | best other policy | its accuracy | difference, pp (95 %) |", "|---|---|---|---|---|"]
    for row in sorted(contests, key=lambda row: row["rival_difference"] or 0):
        ends = f"{points(row['rival_difference'])} [{points(row['rival_low'])}, {points(row['rival_high'])}]"
        lines.append(
            f"| {row['cell']} | {row['accuracy']:.3f} | {row['rival']} | {row['rival_accuracy']:.3f} | {ends} |"
        )
    return "\n".join(lines)


def rounds(data: dict[str, Rows]) -> str:
    """Return what rounds cost against one pull at a time."""
    lines = [
        "| rounds | replications a cell | mean, pp | cells within 2 pp | worst cell, pp (95 %) | which |",
        "|---|---|---|---|---|---|",
    ]
    for count in ROUNDS:
        if rows := data.get(f"rounds {count}"):
            worst = min(rows, key=lambda row: row["rival_difference"])
            near = [sum(row[key] >= -0.02 - 1e-12 for row in rows) for key in ("rival_high", "rival_difference")]
            ends = f"{points(worst['rival_difference'])} [{points(worst['rival_low'])}, {points(worst['rival_high'])}]"
            lines.append(
                f"| {count} | {rows[0]['replications']} | {points(distances(rows)['mean'])} | "
                f"{near[0]} ({near[1]}) of {len(rows)} | {ends} | {worst['cell']} |"
            )
    return "\n".join(lines)


def ablation(rows: Rows) -> str:
    """Return what each part buys."""
    lines = [
        f"{rows[0]['cells']} cells of the suite, {rows[0]['replications']} replications each; "
        "differences to `auto` in pp.",
        "",
        "| variant | mean accuracy | difference (95 %) | worst cell | best cell |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        ends = f"{points(row['difference'])} [{points(row['low'])}, {points(row['high'])}]"
        lines.append(
            f"| {row['variant']} | {row['accuracy']:.3f} | {ends} | {points(row['worst'])} ({row['worst_cell']}) | "
            f"{points(row['best'])} |"
        )
    return "\n".join(lines)


def filled(page: str, name: str, text: str) -> str:
    """Return the page with `text` between the markers of `name`."""
    start, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    if start not in page:
        return page
    head, rest = page.split(start, 1)
    return f"{head}{start}\n{text}\n{end}{rest.split(end, 1)[1]}"


def written(page: str, data: dict[str, Rows], parts: Rows) -> str:
    """Return the page with these numbers."""
    page = filled(filled(page, "summary", summary(data["default"])), "cells", cells(data["default"]))
    for name in SUITES:
        page = filled(filled(page, name, summary(data[name])), f"{name} cells", cells(data[name]))
    page = filled(filled(page, "gse-auto", summary(data["gse-auto"])), "rounds", rounds(data))
    return filled(page, "ablation", ablation(parts))


def main() -> None:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    data = collect(results)
    parts = read_csv(results / "ablation.csv" if (results / "ablation.csv").exists() else ABLATION)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), data, parts), encoding="utf-8")
    title = f"auto against the best other policy of each cell, {data['default'][0]['replications']} replications"
    draw_suite(data["default"], title).savefig(FIGURE, dpi=110)
    CONTESTS.write_text(to_csv([row for rows in data.values() for row in rows]), encoding="utf-8")
    ABLATION.write_text(to_csv(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
