"""`bestarm bench`, `bestarm instances` and `bestarm reproduce`."""

import json
import os
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from bestarm.bench import WORLDS, Results, grid, instance
from bestarm.bench import run as run_grid
from bestarm.bench import table as tables
from bestarm.cli.app import FORMAT, loudness, main, plain, print_table, say, stopped_with
from bestarm.cli.options import COUNT, counted
from bestarm.draw.style import can_draw
from bestarm.errors import BestArmError, InputError
from bestarm.tables.files import read_file


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
@click.argument("world", metavar="[INSTANCE]", required=False)
@click.argument("file", required=False)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a parameter; K=8,16 makes two instances."
)
@click.option("--budget", type=COUNT, help="Pulls to spend.")
@click.option("--budget-per-arm", type=float, help="Pulls to spend for each arm there is.")
@click.option(
    "--policy",
    "--policies",
    "policies",
    multiple=True,
    help="A policy, or NAME:setting=value; your own is package.module:Class:setting=value (repeatable). With --suite, "
    "a rival in place of all that are fast.",
)
@click.option(
    "--suite", "suite_name", help="Judge a policy on a suite in place of an instance: a name, or a JSON file."
)
@click.option("--judge", default="auto", help="--suite: the policy that is judged.")
@click.option(
    "--rival-from",
    type=COUNT,
    help="--suite: choose the best rival of each contest by the first so many replications, and measure on the others.",
)
@click.option(
    "--replications", type=COUNT, default=1000, help="Runs of each cell; with --suite 2000, in chunks of 250."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of everything random; with --suite its own.")
@click.option("--jobs", type=int, default=-1, help="Worker processes; -1 is one for each core.")
@click.option("--engine", help="dask, ray, dask://HOST:PORT or ray://HOST:PORT; local processes otherwise.")
@click.option("--against", help="Add paired differences to this policy.")
@click.option("--draw", type=int, help="table, replay: this many random arms in each replication.")
@click.option("--mean", help="table: the column of true means.")
@click.option("--noise-variance", type=float, help="The variance of one reward.")
@click.option("--bernoulli", is_flag=True, help="table: rewards are 0 or 1, and the means their chances.")
@click.option("--scale", type=click.Choice(["none", "minmax", "standard"]), help="table, replay: scale the features.")
@click.option("--arm", help="replay: the column that names the arm, or the npz array of features.")
@click.option("--value", help="replay: the column of rewards, or the npz array of values.")
@click.option("--minimize", is_flag=True, help="replay: the smallest mean is the best.")
@click.option("--skip", type=int, help="replay: leave out the first so many values of each arm.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Keep results here and resume from it."
)
@FORMAT
def bench(**options: Any) -> None:
    """Measure policies: `bestarm bench adaptive --set K=8,16 --budget-per-arm 20 --policy gse-lin-fwg`.

    INSTANCE is one of `bestarm instances`, or a function of your own, `package.module:function`.
    Or judge one against the others on a fixed list of instances: `bestarm bench --suite default --judge gse-lin-fwg`.
    """
    importable_here()
    asked, ctx = SimpleNamespace(**options), click.get_current_context()
    given = {name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if asked.suite_name is not None:
        _suite(asked, given)
        return
    if asked.world is None:
        raise click.UsageError("name an INSTANCE (`bestarm instances` lists them), or a --suite")
    if not asked.policies:
        raise click.UsageError("name at least one --policy")
    if "judge" in given:
        raise click.UsageError("--judge is for --suite; name policies by --policy")
    if "rival_from" in given:
        raise click.UsageError("--rival-from is for --suite; --against names a policy to compare with")
    if (asked.budget is None) == (asked.budget_per_arm is None):
        raise click.UsageError("give either --budget or --budget-per-arm")
    if asked.world == "table" and asked.file is not None and Path(asked.file).is_file():
        say(*read_file(asked.file).notes)
    fixed = {key: options[key] for key in FIXED if options[key] not in (None, False)}
    cells = grid(_instances(asked.world, asked.settings, fixed), asked.policies, asked.budget, asked.budget_per_arm)
    with stopped_with(_kept(asked.output)):
        results = run_grid(
            cells, asked.replications, asked.seed, asked.jobs, asked.output, asked.engine, progress=loudness() >= 0
        )
    report(results, asked.against, asked.output, asked.style)


FIXED = ("file", "draw", "mean", "noise_variance", "bernoulli", "scale", "arm", "value", "minimize", "skip")
SUITE_OPTIONS = {"suite_name", "judge", "policies", "rival_from", "replications", "seed", "jobs", "engine", "output",
                 "style"}  # fmt: skip


def _suite(asked: Any, given: set[str]) -> None:
    """Judge a policy on a suite; print the contests and the summary, and keep them with a figure."""
    from bestarm.bench import race
    from bestarm.bench import verdict as verdicts
    from bestarm.bench.suite import load

    for name in given - SUITE_OPTIONS:
        shown = {"world": "INSTANCE", "file": "FILE", "settings": "--set"}.get(name, "--" + name.replace("_", "-"))
        raise click.UsageError(f"{shown} cannot be given with --suite, whose instances and budgets are fixed")
    if asked.output is not None:
        _check_drawing()
    with stopped_with(_kept(asked.output)):
        verdict = race.judge(
            load(asked.suite_name), asked.judge, asked.policies or None,
            asked.replications if "replications" in given else 2000, asked.jobs, asked.output, asked.engine,
            loudness() >= 0, asked.seed if "seed" in given else None, asked.rival_from,
        )  # fmt: skip
    if asked.output is not None:
        paths = verdicts.write(verdict, asked.output)
        if verdict.rows:
            from bestarm.bench.figures import draw_suite

            paths.append(asked.output / "distance.png")
            title = f"{verdict.judge} on the suite {verdict.suite.name}; up to {verdict.replications} replications"
            draw_suite(verdict.rows, title).savefig(paths[-1], dpi=150)
        say("written: " + ", ".join(str(path) for path in paths))
    _print_verdict(verdict, asked.style)
    failed = sum(verdict.judge in outcome.failed for outcome in verdict.outcomes)
    if failed:
        raise BestArmError(
            f"{verdict.judge} failed in {failed} of {len(verdict.outcomes)} contests; the reasons are above"
        )


def _kept(output: Path | None) -> str:
    """Return what is kept of a benchmark that is stopped, and how to go on."""
    if output is None:
        return "nothing is kept of it; with -o FOLDER the next run could go on where this one stopped"
    return f"what was measured is kept in {output}; the same command goes on from there"


def _check_drawing() -> None:
    """Refuse before anything is measured what could not be drawn in the end."""
    if not can_draw():
        raise InputError("figures need matplotlib: pip install 'bestarm-bai[plot]'")


def _print_verdict(verdict: Any, style: str) -> None:
    summary, left_out = verdict.summary(), verdict.not_run()
    if style == "json":
        click.echo(json.dumps(plain({"contests": verdict.rows, "summary": summary, "not_run": left_out}), indent=1))
    elif style == "csv":
        click.echo(tables.to_csv(verdict.rows), nl=False)
    elif verdict.rows:
        shown = ("group", "cell", "accuracy", "rival", "rival_accuracy", "rival_difference", "rival_low", "rival_high")
        more = ("fails", "halving_difference", "process_difference", "fixed", "fixed_difference")
        print_table([{key: _short(row[key]) for key in (*shown, *more)} for row in verdict.rows], "table")
        click.echo()
        print_table([{key: _short(value) for key, value in row.items()} for row in summary], "table")
        click.echo(f"\n{_failing(verdict)}")
    for row in left_out:
        say(f"not run, {row['contests']}x: {row['what']}: {row['why']}")


def _failing(verdict: Any) -> str:
    """Return in words how many contests fail, and how many would by chance."""
    every = verdict.summary()[-1]
    rival = (
        f"chosen by the first {verdict.rival_from} replications" if verdict.rival_from else "chosen by the same data"
    )
    return (
        f"{every['failing']} of {counted(every['contests'], 'contest')} "
        f"{'fails' if every['failing'] == 1 else 'fail'}: the whole 95 % interval of the difference to the best rival, "
        f"{rival}, lies below -2 points. Were the true difference just that in each, {every['failing_by_chance']:.1f} "
        "would, one in 40."
    )


def importable_here() -> None:
    """Let modules in this folder be named as parts, as `python -m` does; what is installed comes first."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


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
        rows, hidden = tables.flat(table), ("replications", "pulls_mean", "pulls_max", "cpu_seconds", "seed")
        keys = [key for key in rows[0] if key not in hidden and any(row[key] is not None for row in rows)]
        print_table([{key: _short(row[key]) for key in keys} for row in rows], "table")
    if results.failures:
        raise BestArmError(f"{len(results.failures)} of {len(results.cells)} cells failed; the table says why")


def _short(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else "–" if value is None else value


@main.command()
@click.option("--figure", "names", multiple=True, help="Only this figure (repeatable).")
@click.option("--panel", default="paper", help="paper, its own figures, or cited, the systems it only names.")
@click.option("--replications", type=COUNT, default=1000, help="Runs of each cell.")
@click.option("--quick", is_flag=True, help="100 replications of fewer cells: minutes in place of hours.")
@click.option("--seed", type=click.IntRange(min=0), default=2106, help="Seed of everything random.")
@click.option("--jobs", "n_jobs", type=int, default=-1, help="Worker processes; -1 is one for each core.")
@click.option("--engine", help="dask, ray, dask://HOST:PORT or ray://HOST:PORT; local processes otherwise.")
@click.option("--data", help="The motor table, or a folder that has it; BESTARM_DATA otherwise.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="results/reproduction",
    help="Folder for results, figures and the report; results there are resumed.",
)
def reproduce(quick: bool, replications: int, names: tuple[str, ...], **how: Any) -> None:
    """Run every experiment of the paper in three settings, draw its figures, and say which of its sentences hold."""
    from bestarm.bench.reproduce import reproduce as run_all

    with stopped_with(_kept(how["output"])):
        done = run_all(names, 100 if quick else replications, quick, progress=loudness() >= 0, **how)
    say(f"report: {done.page} and {done.text}")
    rows = [{"section": claim.sentence.place, "sentence": claim.sentence.text, "verdict": claim.verdict}
            for claim in done.claims if claim.ran]  # fmt: skip
    print_table(rows, "table")
    if len(rows) < len(done.claims):
        left = len(done.claims) - len(rows)
        say(f"{counted(left, 'sentence')} {'is' if left == 1 else 'are'} about figures that were not run")
