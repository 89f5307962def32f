"""`bestarm run` and `bestarm policies`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from bestarm import catalog, pulling
from bestarm.bandits import Bandit, ColumnBandit
from bestarm.cli.answering import show
from bestarm.cli.app import DIRECTION, FORMAT, loudness, main, print_answer, print_table, say, stopped_with
from bestarm.cli.options import COUNT, PULLING, accounted, options, warnings_said
from bestarm.cli.tables import read_arms, reading, table_options
from bestarm.core import Goal, variance_of_noise, whole_budget
from bestarm.draw.style import writable
from bestarm.errors import InputError
from bestarm.numbers import counted
from bestarm.progress import write
from bestarm.rewards import Rewards
from bestarm.study.create import chosen_policy
from bestarm.study.history import look_back
from bestarm.study.report import checked
from bestarm.study.running import begin, make
from bestarm.study.state import StudyState
from bestarm.study.study import Study
from bestarm.study.watching import Watch
from bestarm.tables import in_blocks, open_source, opening
from bestarm.tables.arms import Arms


@main.command()
@click.argument("arms_file", metavar="ARMS.csv|.xlsx|.parquet|.npy")
@click.option("--budget", type=COUNT, required=True, help="Pulls to spend, never one more.")
@table_options(scale="Scale numeric features; minmax scales a simulated column to [0, 1] too.", missing=None)
@click.option("--simulate", metavar="COLUMN", help="Take this column as the true means and simulate rewards.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "error", "mean", "category", "drop"]),
    default="refuse",
    help="Blanks in features and in the simulated column: refuse them, fill in the mean of the others, make a blank "
    "feature a category of its own, or drop the arms whose simulated mean is blank.",
)
@click.option("--noise-variance", type=float, help="Variance of one reward, if known; needed to simulate.")
@options(*PULLING)
@click.option("--model", "model_name", help="Reward model: " + ", ".join(catalog.MODELS) + ".")
@click.option(
    "--policy",
    "policy_name",
    help="A policy of `bestarm policies`, NAME:setting=value, or your own, package.module:Class:setting=value; "
    "otherwise the model's own, and auto where no model is named.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often rewards may be waited for; for the policy auto.")
@click.option("--eta", type=float, help="Keep the best 1/eta of the arms at each stage; for policies of stages.")
@DIRECTION
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of everything random; printed and logged when not given."
)
@click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep each reward in this file as it comes; run again with the same file to resume. It is a study, which "
    "best, report, trials and amend know.",
)
@click.option(
    "--report", "report_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a .html or .png report."
)
@FORMAT
def run(**given: Any) -> None:
    """Find the best arm of a table: `bestarm run cars.csv --budget 4000 --pull './measure {id}'`.

    A .parquet file (or folder of them) or a .npy file (columns x1, x2, ...) of more than 100,000 rows is read in
    blocks, by gse-lin-fwg alone: beyond a dozen bytes a row, memory does not grow with it. Row numbers count from 1.
    """
    asked = SimpleNamespace(**given)
    _check(asked)
    arms, read, means = _arms(asked)
    pull: Any = asked.pull
    if pull is not None:
        pull = pulling.named(pull, asked.pull_timeout, arms.ids if isinstance(arms, Arms) else ())
    world = None if asked.simulate is None else _world(means, asked)
    with warnings_said():
        study = begin(
            arms, whole_budget(asked.budget), asked.log_file, seed=asked.seed, rounds=asked.rounds, labels=asked.label,
            direction=asked.direction, noise_variance=asked.noise_variance, read=read,
            **_policy(asked),
        )  # fmt: skip
        if study.state.rows is not None:
            rows = study.state.rows
            say(f"{rows.rows:,} arms, {counted(rows.columns, 'feature')}, read in blocks")
        truth = world if world is None or means is None else Bandit(study.state.features_of(), means, world)
        _made(study, pull or truth, asked)
        _answer(study, truth, asked)
    if asked.report_file is not None:
        with stopped_with("the report is not written; what is found is above"):
            try:
                study.report(asked.report_file, progress=loudness() >= 0)
            except OSError as error:  # such as a disk that is full by now
                raise InputError(f"--report cannot be written: {error}") from error
        say(f"report written to {asked.report_file}")


@main.command()
@click.argument("name", required=False)
@FORMAT
def policies(name: str | None, style: str) -> None:
    """List the policies there are, those of installed packages too, or explain one: `bestarm policies gse-lin-fwg`.

    Of one policy it prints the expression to type in Python, settings, what it needs, equations, citation and page.
    """
    if name is not None:
        told = catalog.explained(name)
        if style == "table":
            told["equation"] = told["equation"].replace("\n", "\n" + " " * 12)
        print_answer(told, {}, style)
        return
    rows, broken = catalog.listed()
    say(*broken)
    print_table(rows, style)


def _check(asked: Any) -> None:
    if (asked.simulate is None) == (asked.pull is None):
        raise click.UsageError("say where rewards come from: either --simulate COLUMN or --pull 'command {id}'")
    if asked.noise_variance is not None:
        variance_of_noise(asked.noise_variance, "--noise-variance")
    if asked.report_file is not None:
        try:
            checked(asked.report_file)
        except InputError as error:
            raise click.UsageError(f"--report: {error}") from error
    if asked.log_file is not None:
        try:
            writable(asked.log_file)
        except InputError as error:
            raise click.UsageError(f"--log: {error}") from error


def _policy(asked: Any) -> dict[str, Any]:
    """Return the policy and the model of its rewards by name, or the policy with the settings that were given."""
    if asked.eta is None:
        return {"policy": asked.policy_name, "model": asked.model_name}
    own = {"model": catalog.model(asked.model_name)} if asked.policy_name and asked.model_name else {}
    name = asked.policy_name or catalog.default_policy(asked.model_name)
    return {"policy": catalog.policy_of_text(name, eta=asked.eta, **own)}


def _arms(asked: Any) -> tuple[Any, dict[str, Any] | None, Any]:
    """Return the arms, or the path of a long table and how it is read; and true means `(K,)` where they are known."""
    filled = asked.missing if asked.missing in ("mean", "category") else "refuse"
    read = reading({**vars(asked), "missing": filled}, apart=asked.simulate)
    path = asked.arms_file
    if in_blocks(path) and opening.shape(path)[0] > opening.SMALL:
        if asked.missing not in ("refuse", "error"):
            raise InputError("--missing needs all arms in memory, and so long a table is read in blocks; leave it out")
        return path, read, None
    arms = read_arms(path, **read)
    if asked.simulate is None:
        return arms, None, None
    if asked.missing == "drop":
        arms = arms.subset(np.flatnonzero(arms.present(asked.simulate)))
    means = arms.column(asked.simulate, missing="mean" if asked.missing == "mean" else "error")
    if asked.scale == "minmax":
        low, high = means.min(), means.max()
        means = (means - low) / (high - low if high > low else 1.0)
    return arms, None, means


def _world(means: Any, asked: Any) -> Any:
    """Return the noise of a simulated column of means, which goes with the law of the rewards; its world if long."""
    law = Rewards(chosen_policy(**_policy(asked))[1], Goal.of(asked.direction)).law
    if asked.noise_variance is None and not law.counts_suffice:
        raise InputError("simulated rewards need --noise-variance")
    noise = law.noise(asked.noise_variance)
    if means is None:
        return ColumnBandit.of(open_source(asked.arms_file, [asked.simulate]), noise, Goal.of(asked.direction))
    law.check_means(means)
    return noise


def _made(study: Study, pull: Any, asked: Any) -> None:
    """Make the observations; where they end early, say what was spent and how to go on."""
    kept = int(study.state.total)
    if kept:
        say(f"resuming: {kept} rewards are in {asked.log_file}")
    log = asked.log_file
    go_on = f"run again to resume from {log}" if log else "with --log FILE the next run could resume"
    every, said = (Exception, KeyboardInterrupt, SystemExit), str  # which says nothing: `accounted` says it
    with accounted(study, go_on, *every), pulling.ended_by_signals(), _watched(study) as watch:
        make(study, pull, asked.pull_timeout, n_jobs=asked.jobs, retries=asked.retries, progress=watch, account=said)


@contextmanager
def _watched(study: Study) -> Iterator[Any]:
    """Give a function that shows how far a study has come, and says who is still in the race."""
    state = study.state
    seen = {"closed": state.closed, "left": len(state.in_race)}
    with Watch(study, loudness() >= 0) as watch:

        def show(study: Study) -> None:
            watch.step()
            if seen["left"] < 0 or study.state.closed == seen["closed"]:
                return
            seen["closed"] = study.state.closed
            left = study.standing()
            if left is not None and len(left) < seen["left"] and loudness() >= 0:
                write(_race_line(study, len(left), seen["left"]))
            seen["left"] = -1 if left is None else len(left)

        yield show


def _race_line(study: Study, left: int, before: int) -> str:
    state = study.state
    return (
        f"{state.total:,.0f} of {state.budget:,.10g} pulls: {left:,} of {before:,} arms "
        f"{'stays' if left == 1 else 'stay'} in the race; ahead: {study.best_arm}"
    )


def _answer(study: Study, truth: Any, asked: Any) -> None:
    found, state = study.recommend(), study.state
    facts = {"arms": len(state.ids), "rounds": state.rounds, "seed": state.seed}
    if truth is not None:
        facts |= _verdict(state, truth, found.arm)
    more: dict[str, Any] = {}
    if asked.style == "json":
        steps, measured = look_back(study, points=0).steps, state.measured
        more = {
            "counts": dict(zip(state.ids_of(measured), map(int, state.known(measured).counts), strict=True)),
            "by_stage": [{"told": step.told, "left": list(step.left)} for step in steps],
        }
    show(found, facts, asked.style, more)


def _verdict(state: StudyState, truth: Any, arm: str) -> dict[str, Any]:
    """Return how good the answer is in truth."""
    place = state.places[arm]
    if isinstance(truth, ColumnBandit):
        best, mean, most = truth.best, truth.mean(place), truth.mean(truth.best)
    else:
        best = int(np.argmax(state.rewards.goal.turned(truth.means)))
        mean, most = float(truth.means[place]), float(truth.means[best])
    return {"true_best": state.ids[best], "true_mean": mean, "regret": abs(most - mean)}
