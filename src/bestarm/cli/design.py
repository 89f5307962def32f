"""`bestarm design`."""

import json
from typing import Any

import click

from bestarm.answer.wording import aligned, lines, short
from bestarm.cli.app import FORMAT, insist, main, plain, print_table, say, stopped_with, table_text
from bestarm.cli.options import COUNT, Output, counted
from bestarm.cli.tables import PassBar, read_arms, reading, size, table_options
from bestarm.designs.allocation import CRITERIA, Allocation
from bestarm.designs.allocation import design as find_design
from bestarm.draw.style import writable
from bestarm.errors import InputError
from bestarm.tables import in_blocks


@main.command()
@click.argument("table", metavar="TABLE")
@click.option("--pulls", type=COUNT, required=True, help="Measurements to spread over the rows.")
@click.option(
    "--criterion",
    type=click.Choice([*CRITERIA]),
    default="g",
    help="What is made least. g: the worst error of a mean; d: the volume of the confidence ellipsoid, by the same "
    "design (Kiefer and Wolfowitz 1960); xy: the worst error of a difference between rows, for up to 300 rows.",
)
@click.option(
    "--cost",
    metavar="COLUMN",
    help="What a measurement of each row costs. Information for the same money is then made largest: weights are "
    "shares of the money, pulls are proportional to weight / cost and still --pulls in all; the money is printed.",
)
@click.option("--columns", metavar="A,B,C", help="Columns to use as features, in one word.")
@table_options(
    label=None,
    id="Column that names the rows; row numbers, from 1, otherwise.",
    categorical="Column of categories though it holds numbers (CSV; repeatable).",
    scale="Scale numeric features (CSV).",
)
@click.option("--tolerance", type=click.FloatRange(min=0, min_open=True), default=1e-3, help="Largest certificate - 1.")
@click.option("--memory", metavar="SIZE", help="Most memory for blocks and pools (not for CSV), such as 2GiB.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the rows to this CSV file.")
@FORMAT
def design(table: str, pulls: int, criterion: str, tolerance: float, output: str | None, **asked: Any) -> None:
    """Say which rows to measure, and how often: `bestarm design candidates.parquet --pulls 96 -o plate.csv`.

    TABLE is a CSV file or a workbook, or a .parquet file, a folder of them or a .npy file (columns x1, x2, ...) of any
    length, which is read a few times in blocks. Before rounding to whole pulls the efficiency is at least
    1 / certificate.
    """
    asked["feature"] += tuple(name.strip() for name in (asked["columns"] or "").split(",") if asked["columns"])
    read, limit = reading(asked), None if asked["memory"] is None else size(asked["memory"])
    given: Any = table
    if in_blocks(table):
        for option in ("categorical", "scale", "missing", "na"):
            if read.get(option, ()) not in ((), "none"):
                raise InputError(f"--{option} is for CSV tables and workbooks; {table} is read in blocks, as it is")
        read["memory"] = limit
    else:
        given, read = read_arms(table, **read), {}
    if output is not None:
        writable(output)  # known before the passes, not after
    with PassBar() as bar, stopped_with("nothing is written; a looser --tolerance is quicker"):
        found = find_design(given, pulls, criterion, tolerance=tolerance, progress=bar.passed, rng=0, **read)
    if not found.reached:
        insist(f"Warning: the tolerance of {tolerance:g} was not reached; the certificate is {found.certificate:.6f}")
    rows = found.records()
    if asked["id_column"] is None:
        rows = [{key: cell for key, cell in row.items() if key != "id"} for row in rows]
    if output is not None:
        with Output(output) as file:
            file.write(table_text(rows, "csv").encode())
        say(f"{counted(len(rows), 'row')} written to {output}")
    _print(_facts(found, criterion, asked["cost"]), rows, asked["style"], output is None)


def _facts(found: Allocation, criterion: str, cost: str | None) -> dict[str, Any]:
    return {
        "criterion": criterion,
        "certificate": found.certificate,
        "reached": found.reached,
        "candidates": found.arms,
        "rank": found.rank,
        "passes": found.passes,
        "support": found.support,
        "rows": len(found.rows),
        "pulls": int(found.pulls.sum()),
    } | ({} if cost is None else {"money": found.money})


def _print(facts: dict[str, Any], rows: list[dict[str, Any]], style: str, whole: bool) -> None:
    """Print the facts, and the rows too where they are not written to a file."""
    if style == "json":
        click.echo(json.dumps(plain(facts | {"design": rows}), indent=1))
        return
    if style == "csv":
        print_table(rows, "csv")
        return
    shown = {key: f"{value:.6f}" if isinstance(value, float) else str(value) for key, value in facts.items()}
    click.echo("\n".join(lines(shown)))
    if whole:
        cells = [{key: short(value) for key, value in row.items()} for row in rows]
        click.echo("\n".join(["", *aligned(cells, ">")]))
