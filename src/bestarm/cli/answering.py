"""What a study says, and its observations made by a command: best, report, run-study."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from bestarm.cli.app import FORMAT, INTERRUPTED, insist, loudness, main, print_answer, say, stopped_with
from bestarm.cli.options import PULLING, accounted, cause, counted, of_study, options, spent, typed
from bestarm.errors import InputError, PullError, RewardError, StorageError

if TYPE_CHECKING:
    from bestarm.answer.answer import Answer
    from bestarm.study import Study


@main.command()
@FORMAT
@of_study
def best(study: "Study", style: str) -> None:
    """Print the arm to choose, its estimate, and how sure that is: `bestarm best -f json`."""
    from bestarm.study.doctor import set_aside

    show(study.recommend(), {"finished": study.state.over}, style)
    say(*set_aside(study.state))


def show(found: "Answer", facts: dict[str, Any], style: str, more: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Print an answer and facts on how it came about; JSON takes `more` along."""
    told = {"chances": found.chances, "warnings": list(found.warnings), "next": found.next}
    print_answer(found.row() | facts, {**told, **more}, style)
    insist(*found.warnings)


@main.command()
@click.option("-o", "--output", default="report.html", metavar="REPORT.html", help="File to write.")
@of_study
def report(study: "Study", output: str) -> None:
    """Write one page that says what was found, how sure it is, and what was spent: `bestarm report -o page.html`."""
    try:
        with stopped_with(f"{output} is not written; run again to write it"):
            study.report(output, progress=loudness() >= 0)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {cause(error)}") from error
    say(f"report written to {output}")


@main.command("run-study")
@options(*PULLING)
@click.option("--timeout", "old_timeout", type=float, hidden=True)
@click.option("--per-second", type=float, metavar="N", help="Pulls begun in a second, at most.")
@click.option(
    "--shared", is_flag=True, help="Leave trials alone that a person asked for; those of other runners always are."
)
@click.option(
    "--lease", type=float, metavar="SECONDS", help="Time without a sign of life after which trials are taken over."
)
@of_study
def run_study(
    study: "Study", pull: str | None, jobs: int, pull_timeout: float | None, old_timeout: float | None, **how: Any
) -> None:  # fmt: skip
    """Make a study's observations, resuming where it stopped: `bestarm run-study --pull './measure {id}' --jobs 4`.

    Every value is kept as soon as it is there. Ctrl-C waits for the pulls under way, a second one does not.
    """
    from bestarm.pulling import ended_by_signals
    from bestarm.study.running import make

    if pull is None:
        raise click.UsageError("Missing option '--pull'.")
    timeout = old_timeout if pull_timeout is None else pull_timeout
    given = {key: value for key, value in how.items() if value is not None}
    with accounted(study, "run again to go on", PullError, RewardError, StorageError), ended_by_signals():
        try:
            made = make(study, pull, timeout, n_jobs=jobs, progress=loudness() >= 0, **given)
        except KeyboardInterrupt:  # which was said
            raise SystemExit(INTERRUPTED) from None
    say(f"{counted(made, 'value')} told; {spent(study)}; next: {typed('best')}")
