"""Write the tables and the figure of docs/which-policy.md again, from what `make bench-default` measured.

    python docs/which_policy.py [results]

Reads the folders below, results/bench-default and results/ablation.json where they are, keeps the numbers in
docs/which_policy.json, and fills the page between its markers. Besides `make bench-default` and
`benchmarks/ablation.py`, these fill the folders (worst.json has the six cells of `default` that ten rounds cost most):

    bestarm bench --suite coffer --replications 1000 -o results/bench-coffer
    bestarm bench --suite chest --replications 1000 -o results/bench-chest
    bestarm bench --suite vault --replications 1000 -o results/bench-vault
    bestarm bench --suite default --judge auto:rounds=10 --policy auto --replications 1000 -o results/rounds-10
    bestarm bench --suite worst.json --judge auto:rounds=10 --policy auto -o results/rounds-10-worst
    bestarm bench --suite coffer --judge auto:rounds=10 --policy auto --replications 500 -o results/coffer-rounds
    bestarm bench --suite chest --judge auto:rounds=10 --policy auto --replications 500 -o results/chest-rounds
    bestarm bench --suite default --judge gse-auto --policy gse-lin-fwg --policy od-linbai -o results/gse-auto
"""

import json
import sys
from pathlib import Path
from typing import Any

from bestarm.bench.figures import draw_suite

HERE = Path(__file__).parent
PAGE, DATA, FIGURE = HERE / "which-policy.md", HERE / "which_policy.json", HERE / "which_policy.png"
ROUNDS = {
    "10": "rounds-10",
    "10, where most was lost": "rounds-10-worst",
    "10, on `coffer`": "coffer-rounds",
    "10, on `chest`": "chest-rounds",
    "5": "rounds-5",
    "3": "rounds-3",
}
SUITES = ("coffer", "chest", "vault")  # each fixed before a change of the default policy and run after it; newest first


def points(value: float | None) -> str:
    """Return a share as percentage points with a sign."""
    return "" if value is None else f"{100 * value:+.1f}"


def verdict(folder: Path) -> dict[str, Any] | None:
    """Return what a folder of results says, if it is there."""
    if not (folder / "summary.json").exists():
        return None
    news: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return news | {"rows": json.loads((folder / "table.json").read_text(encoding="utf-8"))}


def collect(results: Path) -> dict[str, Any]:
    """Return all numbers of the page: those measured in `results`, and for the rest those it has."""
    known: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    folders = {name: f"bench-{name}" for name in ("default", *SUITES)} | {"gse-auto": "gse-auto"}
    found: dict[str, Any] = {name: verdict(results / folder) for name, folder in folders.items()}
    found["rounds"] = {name: verdict(results / folder) for name, folder in ROUNDS.items()}
    found["rounds"] = {r: one or known.get("rounds", {}).get(r) for r, one in found["rounds"].items()}
    ablation = results / "ablation.json"
    found["ablation"] = json.loads(ablation.read_text(encoding="utf-8")) if ablation.exists() else None
    return {name: one or known.get(name) for name, one in found.items()}


def summary(news: dict[str, Any]) -> str:
    """Return the table of groups."""
    lines = [
        f"{news['replications']} replications a cell, judged policy `{news['policy']}`.",
        "",
        "| group | cells | won | within 1 pp | within 3 pp | mean, pp | worst, pp | to halving: mean, worst | "
        "to a Gaussian process: mean, worst |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in news["summary"]:
        lines.append(
            f"| {row['group']} | {row['contests']} | {row['won']} | {row['within_1']} ({row['within_1_point']}) | "
            f"{row['within_3']} ({row['within_3_point']}) | {points(row['mean'])} | {points(row['worst'])} | "
            f"{points(row['halving_mean'])}, {points(row['halving_worst'])} | "
            f"{points(row['process_mean'])}, {points(row['process_worst'])} |"
        )
    return "\n".join(lines)


def cells(news: dict[str, Any]) -> str:
    """Return the table of cells, the hardest first."""
    lines = ["| cell | `auto` | best other policy | its accuracy | difference, pp (95 %) |", "|---|---|---|---|---|"]
    for row in sorted(news["rows"], key=lambda row: row["rival_difference"] or 0):
        ends = f"{points(row['rival_difference'])} [{points(row['rival_low'])}, {points(row['rival_high'])}]"
        lines.append(
            f"| {row['cell']} | {row['accuracy']:.3f} | {row['rival']} | {row['rival_accuracy']:.3f} | {ends} |"
        )
    return "\n".join(lines)


def rounds(news: dict[str, Any]) -> str:
    """Return what rounds cost against one pull at a time."""
    lines = [
        "| rounds | replications a cell | mean, pp | cells within 2 pp | worst cell, pp (95 %) | which |",
        "|---|---|---|---|---|---|",
    ]
    for count, one in news.items():
        if one is not None:
            rows = one["rows"]
            worst = min(rows, key=lambda row: row["rival_difference"])
            near = [sum(row[key] >= -0.02 - 1e-12 for row in rows) for key in ("rival_high", "rival_difference")]
            ends = f"{points(worst['rival_difference'])} [{points(worst['rival_low'])}, {points(worst['rival_high'])}]"
            lines.append(
                f"| {count} | {one['replications']} | {points(one['summary'][-1]['mean'])} | "
                f"{near[0]} ({near[1]}) of {len(rows)} | {ends} | {worst['cell']} |"
            )
    return "\n".join(lines)


def ablation(news: dict[str, Any]) -> str:
    """Return what each part buys."""
    lines = [
        f"{news['cells']} cells of the suite, {news['replications']} replications each; differences to `auto` in pp.",
        "",
        "| variant | mean accuracy | difference (95 %) | worst cell | best cell |",
        "|---|---|---|---|---|",
    ]
    for row in news["rows"]:
        ends = f"{points(row['difference'])} [{points(row['low'])}, {points(row['high'])}]"
        lines.append(
            f"| {row['variant']} | {row['accuracy']:.3f} | {ends} | {points(row['worst'])} ({row['worst_cell']}) | "
            f"{points(row['best'])} |"
        )
    return "\n".join(lines)


def filled(page: str, name: str, text: str | None) -> str:
    """Return the page with `text` between the markers of `name`."""
    start, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    if text is None or start not in page:
        return page
    head, rest = page.split(start, 1)
    return f"{head}{start}\n{text}\n{end}{rest.split(end, 1)[1]}"


def main() -> None:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    data = collect(results) if results.exists() else json.loads(DATA.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    if data["default"]:
        page = filled(filled(page, "summary", summary(data["default"])), "cells", cells(data["default"]))
        title = f"auto against the best other policy of each cell, {data['default']['replications']} replications"
        draw_suite(data["default"]["rows"], title).savefig(FIGURE, dpi=110)
    for name in SUITES:
        if data.get(name):
            page = filled(filled(page, name, summary(data[name])), f"{name} cells", cells(data[name]))
    if data["gse-auto"]:
        page = filled(page, "gse-auto", summary(data["gse-auto"]))
    page = filled(page, "rounds", rounds(data["rounds"]))
    if data["ablation"]:
        page = filled(page, "ablation", ablation(data["ablation"]))
    PAGE.write_text(page, encoding="utf-8")
    DATA.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
