"""`bestarm plan`."""

import json
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from bestarm import catalog
from bestarm.cli.app import DIRECTION, FORMAT, insist, loudness, main, plain, print_table, say, stopped_with
from bestarm.cli.bench import importable_here
from bestarm.cli.options import COUNT
from bestarm.cli.tables import read_arms, reading, table_options
from bestarm.draw.style import can_draw, writable
from bestarm.errors import BudgetWarning, InputError, UnknownNameError
from bestarm.planning import Plan, draw
from bestarm.planning import plan as make_plan
from bestarm.planning.rivals import RIVALS
from bestarm.simulate.policies import named
from bestarm.study import load_study

COLUMNS = ("id_column", "feature", "exclude", "categorical", "scale", "intercept", "missing", "na")
ABOVE_0 = click.FloatRange(min=0, min_open=True)
CHANCE = click.FloatRange(0, 1, min_open=True, max_open=True)


@main.command()
@click.argument("arms_file", metavar="[ARMS.csv]", required=False)
@click.option("--study-name", metavar="NAME", help="Plan for this study: its arms, model, policy, noise and budget.")
@click.option("--storage", metavar="URL", envvar="BESTARM_STORAGE", help="Where the study is; or set BESTARM_STORAGE.")
@click.option("--gap", type=ABOVE_0, help="How far the best mean reward is above the second best.")
@click.option("--prior-variance", type=ABOVE_0, help="In place of a gap: coefficients are normal with this variance.")
@click.option(
    "--rivals", type=click.Choice([*RIVALS]), default="spread", help="Other arms: anywhere behind, or all near the gap."
)
@click.option("--base", type=float, help="Mean reward of an average arm, such as a click rate of 0.02.")
@click.option("--noise-variance", type=ABOVE_0, help="Variance of one reward; for --model linear and means.")
@DIRECTION
@click.option("--error", type=CHANCE, default=0.05, help="Chance of a wrong answer to aim for.")
@click.option("--budget", type=COUNT, help="Say what this budget buys, and twice that, in place of finding one.")
@click.option("--cap", type=COUNT, help="Largest budget to try; 1000000, or 50000 for a policy of single pulls.")
@click.option("--model", help="Reward model: linear, logistic, poisson or means; linear if none is named.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy of `bestarm policies`, or your own as package.module:Class (repeatable); three fast ones otherwise. "
    "auto takes longer: some 10 ms a run.",
)
@table_options(label=None)
@click.option("--replications", type=COUNT, default=1000, help="Simulated runs of each policy with each budget.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random; printed when not given.")
@click.option("--jobs", type=int, default=-1, help="Worker processes; -1 is one for each core.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw error against budget as .png.")
@FORMAT
def plan(
    arms_file: str | None,
    study_name: str | None,
    storage: str | None,
    plot: Path | None,
    style: str,
    **settings: Any,
) -> None:
    """Say how much budget is needed: `bestarm plan ads.csv --model logistic --gap 0.02 --base 0.1 --intercept`."""
    importable_here()
    if (arms_file is None) == (study_name is None):
        raise click.UsageError("say what to plan for: either ARMS.csv or --study-name")
    if plot is not None:
        _check_plot(plot)
    columns = {key: settings.pop(key) for key in COLUMNS}
    if arms_file is None:
        features, settings = _of_study(str(study_name), storage, settings)
        show(plan_for(features, **settings), style, plot)
        return
    _check(**settings)
    show(plan_for(read_arms(arms_file, **reading(columns)), **settings), style, plot)


def _of_study(name: str, storage: str | None, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the features of a study's arms, and the settings with what the study knows filled in."""
    if (settings["gap"] is None) == (settings["prior_variance"] is None):
        raise click.UsageError("say how far the best arm is ahead: either --gap or --prior-variance")
    state = load_study(name, storage).sync()
    if state.cost is not None:
        raise InputError(f"study {name!r} has a budget in money; plan with the table of its arms instead")
    known_as = {label: entry.policy for label, entry in catalog.ENTRIES.items() if entry.policy == state.policy}
    known = {
        "model": state.rewards.model,
        "noise_variance": settings["noise_variance"] or state.noise_variance,
        "budget": settings["budget"] or int(state.budget),
        "direction": state.rewards.goal,
        "policies": settings["policies"] or known_as or {"the study's policy": state.policy},
    }
    return np.array([row for row, there in zip(state.features, state.present, strict=True) if there]), settings | known


def plan_for(
    arms: Any, policies: Any, prior_variance: float | None, seed: int | None, jobs: int, **settings: Any
) -> Plan:
    """Return the plan for a table of arms with the options of the command; warnings are left to the plan."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
        say(f"seed {seed}")
    again = f"nothing is kept of a plan; --seed {seed} gives the same numbers, fewer --replications are quicker"
    with stopped_with(again), warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        return make_plan(
            arms,
            policies=policies or None,
            prior=prior_variance,
            rng=seed,
            n_jobs=jobs,
            progress=loudness() >= 0,
            **settings,
        )


def show(made: Plan, style: str, plot: Path | None = None) -> None:
    """Print a plan, say its warnings, and draw it."""
    insist(*(f"{BudgetWarning.__name__}: {warning}" for warning in made.warnings))
    if style == "json":
        click.echo(json.dumps(plain(made.to_dict()), indent=1))
    elif style == "table":
        click.echo("\n".join(line for line in str(made).splitlines() if not line.startswith("warning: ")))
    elif made.curve:
        print_table(list(made.curve), style)
    if plot is not None and made.curve:
        try:
            draw(made).figure.savefig(plot, dpi=150)
        except OSError as error:
            raise InputError(f"--plot cannot be written: {error}") from error
        say(f"figure written to {plot}")


def _check_plot(plot: Path) -> None:
    if plot.suffix.lower() != ".png":
        raise click.UsageError(f"--plot takes a .png file; given {plot.name!r}")
    if not can_draw():
        raise click.UsageError("--plot needs matplotlib: pip install 'bestarm-bai[plot]'")
    try:
        writable(plot)
    except InputError as error:
        raise click.UsageError(f"--plot: {error}") from error


def _check(model: str | None, gap: float | None, prior_variance: float | None, **settings: Any) -> None:
    if (gap is None) == (prior_variance is None):
        raise click.UsageError("say how far the best arm is ahead: either --gap or --prior-variance")
    noise = settings["noise_variance"]
    if settings["jobs"] == 0:
        raise click.UsageError("--jobs must not be 0; -1 is one for each core")
    model = model or "linear"
    if model not in catalog.MODELS:
        raise click.UsageError(f"--model: {UnknownNameError('model', model, catalog.MODELS)}")
    try:
        named(settings["policies"])
    except InputError as error:
        raise click.UsageError(f"--policy: {error}") from error
    if catalog.model(model).law.counts_suffice == (noise is not None):
        needed = "is needed, the variance of one reward" if noise is None else "is not for rewards of this model"
        raise click.UsageError(f"--noise-variance {needed}")
