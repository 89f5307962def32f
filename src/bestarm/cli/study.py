"""Studies by files only: create-study, studies, ask, tell, import, best, report, run-study, delete-study, doctor."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bestarm.arms import Arms
from bestarm.cli.app import FORMAT, main, print_table, say
from bestarm.cli.request import observer
from bestarm.cli.run import run as run_command
from bestarm.errors import BestArmError, InputError
from bestarm.study import (
    Batch,
    Study,
    create_study,
    delete_study,
    get_all_study_names,
    load_study,
    open_storage,
)
from bestarm.study.doctor import examine
from bestarm.study.files import Received, import_file, tell_file, write_batch

ARMS = ("id_column", "label", "feature", "exclude", "categorical", "scale", "intercept")

STORAGE = click.option(
    "--storage",
    metavar="URL",
    envvar="BESTARM_STORAGE",
    required=True,
    help="Where studies are: sqlite:///file.db, a file name, postgresql+psycopg://...; or set BESTARM_STORAGE.",
)
STUDY = click.option("--study-name", "name", metavar="NAME", required=True, help="Which study.")
SOURCE = click.option("--source", help="Who or what measured, kept with each result; the file's name otherwise.")
RESULTS = click.argument("results_file", metavar="RESULTS.csv")


def _arms_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options by which `run` reads a table of arms."""
    for option in reversed([param for param in run_command.params if param.name in ARMS]):
        command.__dict__.setdefault("__click_params__", []).append(option)
    return command


@main.command("create-study")
@click.argument("name")
@click.option("--arms", "arms_file", metavar="ARMS.csv", required=True, help="Table of arms, a row each; - is stdin.")
@_arms_options
@click.option("--cost", metavar="COLUMN", help="Column with the price of a pull; the budget is then money.")
@click.option("--budget", type=float, required=True, help="Pulls to spend, or money with --cost; never more.")
@click.option("--batch", type=click.IntRange(min=1), help="Trials handed out at once, such as a plate of 96.")
@click.option("--rounds", type=click.IntRange(min=1), help="How often to wait for results; for the policy auto.")
@click.option("--policy", help="A policy of `bestarm policies`; the model's own, or auto without --model, otherwise.")
@click.option("--model", help="Reward model: linear, logistic, poisson, means or forest; auto needs none.")
@click.option("--minimize", is_flag=True, help="The smallest mean is the best.")
@click.option("--noise-variance", type=float, help="Variance of one reward, if known.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random; drawn and kept otherwise.")
@click.option("--no-refund", is_flag=True, help="A failed trial is lost; otherwise its arm is asked again.")
@click.option("--no-extra", is_flag=True, help="Refuse results of arms nobody asked for.")
@click.option("--if-exists", type=click.Choice(["error", "load"]), default="error", help="load: be content with it.")
@STORAGE
def create(
    name: str, arms_file: str, id_column: str | None, label: tuple[str, ...], feature: tuple[str, ...],
    exclude: tuple[str, ...], categorical: tuple[str, ...], scale: str, intercept: bool, cost: str | None,
    budget: float, batch: int | None, rounds: int | None, policy: str | None, model: str | None, minimize: bool,
    noise_variance: float | None, seed: int | None, no_refund: bool, no_extra: bool, if_exists: str, storage: str,
) -> None:  # fmt: skip
    """Begin a study: `bestarm create-study assay --arms conditions.csv --id code --budget 480 --batch 96`."""
    apart = set() if feature else {*exclude, *label} - {id_column, cost}
    arms = Arms.from_csv(
        arms_file, id=id_column, features=feature or None, exclude=tuple(sorted(apart)), categorical=categorical,
        scale=scale, intercept=intercept, cost=cost,
    )  # fmt: skip
    study = create_study(
        arms, int(budget) if budget.is_integer() else budget, policy, model, study_name=name,
        storage=storage, load_if_exists=if_exists == "load", direction="minimize" if minimize else "maximize",
        noise_variance=noise_variance, seed=seed, batch=batch, rounds=rounds, refund=not no_refund, extra=not no_extra,
    )  # fmt: skip
    say(f"{arms!r}".removeprefix("Arms").strip("()"), *arms.notes)
    fold = study.sync()
    say(f"study {name!r}: {_policy(study)}, budget {fold.budget:g}, seed {fold.seed}; next: bestarm ask")


@main.command()
@STORAGE
@FORMAT
def studies(storage: str, style: str) -> None:
    """List the studies of a storage, with how far each has come."""
    place = open_storage(storage)
    rows = []
    for name in get_all_study_names(place):
        try:
            rows.append(_row(load_study(name, place)))
        except BestArmError as error:
            say(f"study {name!r} cannot be read ({error}); `bestarm doctor` says more")
            raise click.exceptions.Exit(1) from error
    if rows:
        print_table(rows, style)
    else:
        say("there are no studies here")


@main.command()
@STUDY
@click.option(
    "-n", "count", type=click.IntRange(min=1), help="Trials to ask for; the study's batch or stage otherwise."
)
@click.option("--pending", is_flag=True, help="Write the trials that are out and not yet answered; ask for nothing.")
@click.option("-o", "--output", default="-", metavar="BATCH.csv", help="File to write; - is stdout.")
@click.option("--overwrite", is_flag=True, help="Replace the file if there is one.")
@click.option("--source", help="Who asks, kept in the log.")
@STORAGE
def ask(
    name: str, count: int | None, pending: bool, output: str, overwrite: bool, source: str | None, storage: str
) -> None:
    """Say what to measure next: a row for each trial, with an empty column `reward` to fill in."""
    if output != "-" and Path(output).is_file() and not overwrite:
        raise InputError(f"there is a file {output} already, perhaps with results; name another, or add --overwrite")
    study = load_study(name, storage)
    batch = study.pending() if pending else study.ask(count, source)
    if not batch:
        _say_why_nothing(study, pending)
        return
    _write(study, batch, output)
    fold = study.sync()
    say(
        f"{len(batch)} trials of {len(batch.arms)} arms; {fold.used:g} of {fold.budget:g} spent, "
        f"{len(study.pending())} trials out"
    )


@main.command()
@RESULTS
@STUDY
@SOURCE
@STORAGE
def tell(results_file: str, name: str, source: str | None, storage: str) -> None:
    """Take results in: the file of `ask` with rewards filled in, a blank one being not yet measured.

    Columns `trial` and `reward`, or `arm` and `reward` for results nobody asked for; `failed` with a reason for trials
    that went wrong; any others are passed over. The same result twice counts once.
    """
    study = load_study(name, storage)
    _received(study, tell_file(study, *_read(results_file), source=source))


@main.command("import")
@RESULTS
@STUDY
@STORAGE
def import_(results_file: str, name: str, storage: str) -> None:
    """Add earlier observations, rows of `arm` and `reward`; they inform the answer and cost nothing."""
    study = load_study(name, storage)
    _received(study, import_file(study, *_read(results_file)))


@main.command()
@STUDY
@STORAGE
@FORMAT
def best(name: str, storage: str, style: str) -> None:
    """Print the arm to choose, its estimate, and how sure that is."""
    study = load_study(name, storage)
    found, fold = study.recommend(), study.sync()
    low, high = found.interval
    row = {
        "arm": found.arm, "value": found.value, "low": low, "high": high, "corrected": found.corrected,
        "p_best": found.p_best, "runner_up": found.runner_up, "expected_regret": found.expected_regret,
        "spent": fold.used, "budget": fold.budget, "finished": fold.round is None,
    }  # fmt: skip
    if style == "json":
        row["believes"] = found.believes
    if style == "table":
        row = {key: f"{cell:.4g}" if isinstance(cell, float) else cell for key, cell in row.items()}
    print_table([row], style)
    say(*([] if style == "json" else [f"believed: {found.believes}"]), *found.warnings)


@main.command()
@STUDY
@click.option("-o", "--output", default="report.html", metavar="REPORT.html", help="File to write.")
@STORAGE
def report(name: str, output: str, storage: str) -> None:
    """Write one page that says what was found, how sure it is, and what was spent."""
    study = load_study(name, storage)
    try:
        study.report(output)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
    say(f"report written to {output}")


@main.command("delete-study")
@STUDY
@click.option("--yes", is_flag=True, help="Do not ask.")
@STORAGE
def delete(name: str, yes: bool, storage: str) -> None:
    """Forget a study and all its results."""
    place = open_storage(storage)
    told = int(sum(load_study(name, place).fold.counts)) if not yes else 0
    if not yes:
        click.confirm(f"forget study {name!r} and its {told} results?", abort=True, err=True)
    delete_study(name, place)
    say(f"study {name!r} is deleted")


@main.command("run-study")
@STUDY
@click.option(
    "--pull",
    metavar="'CMD {id}'|MODULE:FUNCTION",
    required=True,
    help="How to observe an arm: a command that prints one number, or a Python function of the arm's id.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Pulls at a time.")
@click.option("--retries", type=click.IntRange(min=0), default=2, help="How often a failed pull is tried again.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Longest time for one pull.")
@click.option("--shared", is_flag=True, help="Others run this study too: leave their trials to them.")
@STORAGE
def run_study(name: str, pull: str, jobs: int, retries: int, timeout: float | None, shared: bool, storage: str) -> None:
    """Make a study's observations with a command or a function, and resume where it stopped."""
    study = load_study(name, storage)
    observe = observer(pull, timeout)
    limit = None if "{id}" in pull else timeout  # a command ends its own
    try:
        made = study.run(
            observe, n_jobs=jobs, retries=retries, timeout=limit, progress=sys.stderr.isatty(), shared=shared
        )
    except KeyboardInterrupt:
        say(f"stopped with {study.spent:g} of {study.budget:g} spent; every value that came back is kept, run again")
        raise
    say(f"{made} values told; {study.spent:g} of {study.budget:g} spent; next: bestarm best")


@main.command()
@STORAGE
@FORMAT
def doctor(storage: str, style: str) -> None:
    """Open a storage, read every study, and say what is wrong and what to do; exit code 1 if something is."""
    found = examine(open_storage(storage))
    rows = [{"study": one.study, "state": "wrong" if one.wrong else "fine", "says": one.says} for one in found]
    print_table(rows, style)
    if any(one.wrong for one in found):
        raise click.exceptions.Exit(1)


def _policy(study: Study) -> str:
    return str(study.sync().first.get("policy_name", "a policy"))


def _row(study: Study) -> dict[str, Any]:
    fold = study.sync()
    return {
        "study": study.name, "arms": sum(fold.present), "policy": _policy(study), "budget": fold.budget,
        "spent": fold.used, "results": int(sum(fold.counts)), "pending": len(study.pending()),
        "failed": len(fold.failures), "state": "over" if fold.round is None else f"round {fold.round.number + 1}",
        "ahead": study.best_arm,
    }  # fmt: skip


def _say_why_nothing(study: Study, pending: bool) -> None:
    out = len(study.pending())
    if study.finished:
        say(f"the study is over: {study.spent:g} of {study.budget:g} spent; next: bestarm best")
    elif pending:
        say("no trial is out")
    else:
        say(f"all trials of this round are out, {out} of them unanswered: tell their results first (ask --pending)")


def _read(path: str) -> tuple[bytes, str]:
    if path == "-":
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), Path(path).name
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _write(study: Study, batch: Batch, output: str) -> None:
    """Write a batch; one that cannot be written stays out, and `--pending` writes it again."""
    text = io.StringIO()
    write_batch(study, batch, text)
    if output == "-":
        click.echo(text.getvalue(), nl=False)
        return
    target = Path(output)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():  # a device is written to, never replaced
            target.write_text(text.getvalue(), encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.part")
        part.write_text(text.getvalue(), encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise InputError(
            f"{output} cannot be written: {error.strerror}; ask --pending writes the trials again"
        ) from error


def _received(study: Study, got: Received) -> None:
    say(*got.notes)
    say(f"{got.new} new, {got.known} known already, {got.blank} blank, {got.failed} failed")
    out = len(study.pending())
    say(f"the study is over: {study.spent:g} of {study.budget:g} spent" if study.finished else f"{out} trials out")
