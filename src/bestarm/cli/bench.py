"""`bestarm bench`, `bestarm instances` and `bestarm reproduce`."""

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import click

from bestarm.bench import WORLDS, Results, grid, instance
from bestarm.bench import run as run_grid
from bestarm.bench import table as tables
from bestarm.cli.app import FORMAT, main, plain, print_table, say
from bestarm.errors import BestArmError, InputError


@main.command()
@FORMAT
def instances(style: str) -> None:
    """List the instances there are, with one line each and what can be set."""
    rows = []
    for name, world in WORLDS.items():
        settings = " ".join(f"{key}={value}" for key, value in world.params.items() if value not in (None, ""))
        rows.append({"instance": name, "about": world.about, "parameters": settings})
    print_table(rows, style)


@main.command()
@click.argument("world", metavar="INSTANCE")
@click.argument("file", required=False)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a parameter; K=8,16 makes two instances."
)
@click.option("--budget", type=int, help="Pulls to spend.")
@click.option("--budget-per-arm", type=float, help="Pulls to spend for each arm there is.")
@click.option(
    "--policy", "policies", multiple=True, required=True, help="A policy, or NAME:setting=value (repeatable)."
)
@click.option("--replications", type=int, default=1000, help="Runs of each cell.")
@click.option("--seed", type=int, default=0, help="Seed of everything random.")
@click.option("--jobs", type=int, default=-1, help="Worker processes; -1 is one for each core.")
@click.option("--engine", help="dask, ray, dask://HOST:PORT or ray://HOST:PORT; local processes otherwise.")
@click.option("--against", help="Add paired differences to this policy.")
@click.option("--draw", type=int, help="table, replay: this many random arms in each replication.")
@click.option("--mean", help="table: the column of true means.")
@click.option("--noise-variance", type=float, help="The variance of one reward.")
@click.option("--bernoulli", is_flag=True, help="table: rewards are 0 or 1, and the means their chances.")
@click.option("--scale", type=click.Choice(["none", "minmax", "standard"]), help="table: scale the features.")
@click.option("--arm", help="replay: the column that names the arm, or the npz array of features.")
@click.option("--value", help="replay: the column of rewards, or the npz array of values.")
@click.option("--minimize", is_flag=True, help="replay: the smallest mean is the best.")
@click.option("--skip", type=int, help="replay: leave out the first so many values of each arm.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Keep results here and resume from it."
)
@FORMAT
def bench(
    world: str,
    file: str | None,
    settings: tuple[str, ...],
    budget: int | None,
    budget_per_arm: float | None,
    policies: tuple[str, ...],
    replications: int,
    seed: int,
    jobs: int,
    engine: str | None,
    against: str | None,
    output: Path | None,
    style: str,
    **more: Any,
) -> None:
    """Measure policies: `bestarm bench adaptive --set K=8,16 --budget-per-arm 20 --policy gse-lin-fwg`."""
    if (budget is None) == (budget_per_arm is None):
        raise click.UsageError("give either --budget or --budget-per-arm")
    fixed = {key: value for key, value in {"file": file, **more}.items() if value not in (None, False)}
    cells = grid(_instances(world, settings, fixed), policies, budget, budget_per_arm)
    results = run_grid(cells, replications, seed, jobs, output, engine, progress=sys.stderr.isatty())
    report(results, against, output, style)


def _instances(world: str, settings: tuple[str, ...], fixed: dict[str, Any]) -> list[Any]:
    choices = []
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not equals:
            raise InputError(f"a parameter is set by KEY=VALUE; given {setting!r}")
        choices.append([(key.strip(), value) for value in values.split(",")])
    return [instance(world, {**fixed, **dict(chosen)}) for chosen in product(*choices)]


def report(results: Results, against: str | None, output: Path | None, style: str) -> None:
    """Print the table of results, keep it, and end with an error if a cell failed."""
    table = results.table(against)
    if output is not None and table:
        say("written: " + ", ".join(str(path) for path in tables.write(table, output)))
    if style == "json":
        click.echo(json.dumps(plain(table), indent=1))
    elif style == "csv":
        click.echo(tables.to_csv(table), nl=False)
    elif table:
        keys = ["replications", "regret", "pulls_mean", "pulls_max", "cpu_seconds", "seed"]
        shown = [
            {k: _short(v) for k, v in row.items() if k not in keys and v is not None} for row in tables.flat(table)
        ]
        print_table([row | {"regret": _short(full["regret"])} for row, full in zip(shown, table, strict=True)], "table")
    for cell in results.cells:
        if cell.key in results.failures:
            say(f"FAILED {cell.policy} on {cell.instance}, budget {cell.budget}: {results.failures[cell.key]}")
    if results.failures:
        raise BestArmError(f"{len(results.failures)} of {len(results.cells)} cells failed; the others are above")


def _short(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else value


@main.command()
@click.option("--figure", "names", multiple=True, help="Only this figure (repeatable).")
@click.option("--replications", type=int, default=1000, help="Runs of each cell.")
@click.option("--quick", is_flag=True, help="100 replications of fewer cells: minutes instead of an hour.")
@click.option("--seed", type=int, default=2106, help="Seed of everything random.")
@click.option("--jobs", type=int, default=-1, help="Worker processes; -1 is one for each core.")
@click.option("--engine", help="dask, ray, dask://HOST:PORT or ray://HOST:PORT; local processes otherwise.")
@click.option("--data", help="The motor table, or a folder that has it; BESTARM_DATA otherwise.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="results/reproduction",
    help="Folder for results, figures and the report; results there are resumed.",
)
def reproduce(
    names: tuple[str, ...],
    replications: int,
    quick: bool,
    seed: int,
    jobs: int,
    engine: str | None,
    data: str | None,
    output: Path,
) -> None:
    """Run every experiment of the paper, draw its figures, and say which of its claims hold."""
    from bestarm.bench.reproduce import reproduce as run_all

    done = run_all(
        names, 100 if quick else replications, quick, seed, jobs, engine, data, output, progress=sys.stderr.isatty()
    )
    say(f"report: {done.page} and {done.text}")
    print_table([{"verdict": claim.verdict, "claim": claim.sentence} for claim in done.claims], "table")
