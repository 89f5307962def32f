"""`bestarm design`."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import click

from bestarm import report
from bestarm.cli.app import main, plain, say
from bestarm.cli.tables import Ids, PassBar, chosen, in_blocks, open_table, shape, size
from bestarm.designs.allocation import CRITERIA, Allocation
from bestarm.designs.allocation import design as find_design
from bestarm.errors import InputError
from bestarm.tables.arms import Arms


@main.command()
@click.argument("table", metavar="TABLE")
@click.option("--pulls", type=click.IntRange(min=1), required=True, help="Measurements to spread over the rows.")
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
@click.option("--id", "id_column", help="Column that names the rows; row numbers, from 1, otherwise.")
@click.option("--columns", metavar="A,B,C", help="Columns to use as features, in one word.")
@click.option("--feature", multiple=True, help="Column to use as a feature (repeatable); all others otherwise.")
@click.option("--exclude", multiple=True, help="Column not to use as a feature (repeatable).")
@click.option("--categorical", multiple=True, help="Column of categories though it holds numbers (CSV; repeatable).")
@click.option(
    "--scale", type=click.Choice(["none", "minmax", "standard"]), default="none", help="Scale numeric features (CSV)."
)
@click.option("--intercept", is_flag=True, help="Add a constant feature.")
@click.option("--tolerance", type=click.FloatRange(min=0, min_open=True), default=1e-3, help="Largest certificate - 1.")
@click.option("--memory", metavar="SIZE", help="Most memory for blocks and pools (not for CSV), such as 2GiB.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows to this CSV file."
)
@click.option("-f", "--format", "style", type=click.Choice(["table", "json", "csv"]), default="table")
def design(
    table: str,
    pulls: int,
    criterion: str,
    cost: str | None,
    id_column: str | None,
    columns: str | None,
    feature: tuple[str, ...],
    exclude: tuple[str, ...],
    categorical: tuple[str, ...],
    scale: str,
    intercept: bool,
    tolerance: float,
    memory: str | None,
    output: Path | None,
    style: str,
) -> None:
    """Say which rows to measure, and how often: `bestarm design candidates.parquet --pulls 96 -o plate.csv`.

    TABLE is a CSV file, or a .parquet file, a folder of them or a .npy file (columns x1, x2, ...) of any length, which
    is read a few times in blocks. Before rounding to whole pulls the efficiency is at least 1 / certificate.
    """
    wanted = (*feature, *([] if columns is None else [name.strip() for name in columns.split(",")]))
    limit = None if memory is None else size(memory)
    with PassBar() as bar:
        if in_blocks(table):
            for option, given in (("--categorical", categorical), ("--scale", scale != "none")):
                if given:
                    raise InputError(f"{option} is for CSV tables; {table} is read in blocks, as it is")
            apart = [name for name in (id_column, cost) if name is not None]
            names = chosen(shape(table)[1], wanted, exclude, apart)
            source: Any = bar.over(open_table(table, names, limit, cost, intercept))
            ids = Ids(table, id_column)
        else:
            arms = Arms.from_csv(
                table,
                id=id_column,
                features=wanted or None,
                exclude=() if wanted else exclude,
                categorical=categorical,
                scale=scale,
                intercept=intercept,
                cost=cost,
            )
            say(f"{arms!r}".removeprefix("Arms").strip("()"), *arms.notes)
            source = arms
            ids = Ids(table, id_column, dict(enumerate(arms.ids)))
        found = find_design(source, pulls, criterion, tolerance=tolerance, rng=0)
        called = ids.of(found.rows)
    if not found.reached:
        say(f"Warning: the tolerance of {tolerance:g} was not reached; the certificate is {found.certificate:.6f}")
    rows = _rows(found, called, id_column)
    facts = _facts(found, criterion, cost)
    if output is not None:
        _write(rows, output)
        say(f"{len(rows):,} rows written to {output}")
    _print(facts, rows, style, output is None)


def _rows(found: Allocation, called: list[str], id_column: str | None) -> list[dict[str, Any]]:
    """Return a flat row for each row to measure; rows count from 1."""
    rows = []
    for at, row in enumerate(found.rows):
        flat: dict[str, Any] = {"row": int(row) + 1} | ({} if id_column is None else {"id": called[at]})
        flat |= {"weight": float(found.weights[at]), "pulls": int(found.pulls[at])}
        flat |= {} if found.costs is None else {"cost": float(found.costs[at])}
        features = dict(zip(found.names, (float(value) for value in found.features[at]), strict=True))
        rows.append(flat | {f"feature {name}" if name in flat else name: value for name, value in features.items()})
    return rows


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


def _write(rows: list[dict[str, Any]], output: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--output cannot be written: {error}") from error


def _print(facts: dict[str, Any], rows: list[dict[str, Any]], style: str, whole: bool) -> None:
    """Print the facts, and the rows too where they are not written to a file."""
    if style == "json":
        click.echo(json.dumps(plain(facts | {"design": rows}), indent=1))
        return
    if style == "csv":
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        shown = f"{value:.6f}" if isinstance(value, float) else str(value)
        click.echo(f"{key:<{width}}  {shown}")
    if whole:
        click.echo("")
        heads = [{key: key for key in rows[0]}]
        cells = [{key: _short(value) for key, value in row.items()} for row in rows]
        widths = {key: max(len(str(row[key])) for row in [*heads, *cells]) for key in rows[0]}
        for row in [*heads, *cells]:
            click.echo("  ".join(f"{row[key]!s:>{size}}" for key, size in widths.items()))


def _short(value: Any) -> str:
    return report.number(value) if isinstance(value, float) else str(value)
