"""What to measure and what came of it, by files: ask, tell, import, fail, hand-back, close-round."""

import shlex
from collections.abc import Callable
from typing import Any

import click

from bestarm.cli.app import FORMAT, main, print_table, say
from bestarm.cli.options import (
    COUNT,
    REASON,
    WHO,
    WHY,
    Output,
    accounted,
    correction,
    counted,
    finished_by_hand,
    named,
    of_study,
    options,
    read_bytes,
    say_undo,
    spent,
    typed,
)  # fmt: skip
from bestarm.study import Batch, Study
from bestarm.study.batches import batch_bytes, blank_columns, is_workbook, spreadsheet_note
from bestarm.study.beyond import EXTRAS
from bestarm.study.columns import by_name
from bestarm.study.corrections import label
from bestarm.study.files import Contradiction, Received, import_file, tell_file
from bestarm.study.naming import locate
from bestarm.study.results import Difference, failing
from bestarm.study.trials import id_of
from bestarm.study.workbooks import openpyxl

OF_RESULTS = options(
    click.argument("results_file", metavar="RESULTS.csv"),
    click.option("--correct", is_flag=True, help="Where the file contradicts the log, the file holds: a correction."),
    click.option("--readings", type=click.Choice(["mean"]), help="Several rows of one trial are readings to average."),
    click.option("--cumulative", is_flag=True, help="Rows by arm are all results so far: what is new counts."),
    click.option("--as", "as_", metavar="NAME", help="Another name for this file: more results of the same kind."),
    click.option("--key", metavar="COLUMN", help="Column that names the rows by arm, so that each counts once."),
    click.option(
        "--column",
        "columns",
        metavar="NAME=COLUMN",
        multiple=True,
        callback=lambda ctx, param, given: by_name(given, click.BadParameter),
        help="Which column of the file is our NAME, such as --column successes=clicks --column trials=views.",
    ),
    click.option("--source", metavar="NAME", help="Who or what measured; the file's name otherwise."),
    WHY,
)


@main.command()
@click.option("-n", "count", type=COUNT, help="Trials to ask for; the study's batch or stage otherwise.")
@click.option("--pending", is_flag=True, help="Write the trials that are out and not yet answered; ask for nothing.")
@click.option("--by", type=click.Choice(["trial", "arm"]), default="trial", help="A row for each trial, or each arm.")
@click.option("-o", "--output", default="-", metavar="BATCH.csv|.xlsx", help="File to write; - is stdout.")
@click.option("--overwrite", is_flag=True, help="Replace the file if there is one.")
@click.option("--source", metavar="NAME", help="Who asks, kept in the log.")
@of_study
def ask(
    study: Study, count: int | None, pending: bool, by: str, output: str, overwrite: bool, source: str | None
) -> None:
    """Say what to measure next: `bestarm ask -o plate1.csv`.

    The file has a row for each trial, with an empty column `reward` to fill in. It can be edited by any spreadsheet;
    `bestarm tell plate1.csv` takes it back in. A name ending in .xlsx makes it a workbook. With --by arm it has a row
    for each arm: how many `times` to pull it, and columns for what that came to. A plate has its rows in the order of
    wells; the study's seed draws which trial is in which.
    """
    if is_workbook(output):
        openpyxl()  # before trials are handed out
    if pending and count is not None:
        raise click.UsageError("--pending writes all trials that are out: it goes without -n")
    go_on = "ask --pending writes the trials that are out"
    with Output(output, overwrite) as file, accounted(study, go_on):
        failures = len(study.state.troubles)
        batch = study.pending() if pending else study.ask(count, source)
        _say_troubles(study, failures)
        if not batch:
            _say_why_nothing(study, pending)
            return
        where = "FILE" if output == "-" else output
        again = f"`bestarm ask --pending -o {where}` writes them again"
        otherwise = f"; its {counted(len(batch), 'trial')} stay out: {again}"
        file.write(batch_bytes(study, batch, output, by == "arm"), otherwise)
    drawn = study.state.plates.get(locate(study.state, batch.trials[0]))
    if drawn and not pending:
        say(f"plate {drawn}: the study's seed, {study.state.seed}, drew which trial is in which well")
    if count is not None and len(batch) < count and study.state.cost is None:
        why = "the budget has no more" if study.state.left < 1 else "the round has no more until its results are told"
        say(f"{count} were asked for: {why}")
    _say_asked(study, batch, output, by)


def _say_asked(study: Study, batch: Batch, output: str, by: str) -> None:
    note = None if is_workbook(output) else spreadsheet_note(study, batch)
    say(*([] if note is None else [note]))
    out = counted(len(study.state.open_trials()), "trial")
    say(f"{counted(len(batch), 'trial')} of {counted(len(batch.arms), 'arm')}; {spent(study)}, {out} out")
    if output != "-":
        columns = _to_fill(study) if by == "arm" else "column reward"
        say(f"next: fill in the {columns} of {output}, then {typed('tell', shlex.quote(output))}")


def _to_fill(study: Study) -> str:
    """Return which columns of a file by arm are to be filled in."""
    first, *others, last = blank_columns(study.state)
    either = f", or {' and '.join(others)}," if others else ""
    return f"columns {first}{either} and {last} (blank: as times)"


def _say_troubles(study: Study, before: int) -> None:
    """Say where the policy failed at this question, and how the study goes on."""
    state = study.state
    for why in state.troubles[before:]:
        say(why)
    if len(state.troubles) > before:
        went = "from here on arms are spread evenly" if state.evenly else "it was started anew on what is known"
        say(f"{went}; `bestarm doctor` says more")


def _say_why_nothing(study: Study, pending: bool) -> None:
    out = len(study.pending())
    if study.finished:
        say(f"the study is over: {spent(study)}; next: {typed('best')}")
        say(*filter(None, [finished_by_hand(study)]))
    elif pending:
        say("no trial is out")
    else:
        say(f"all trials of this round are out, {out} of them unanswered: tell their results first (ask --pending)")


@main.command()
@OF_RESULTS
@click.option(
    "--extras",
    type=click.Choice(EXTRAS),
    default="free",
    help="Results beyond the trials that are out: they cost nothing, or take their price from the budget.",
)
@click.option("--plate", metavar="NUMBER", help="Which plate the wells of the file are of, where no column says so.")
@FORMAT
@of_study
def tell(study: Study, results_file: str, style: str, **how: Any) -> None:
    """Take results in, the file of `ask` with rewards filled in: `bestarm tell plate1_measured.csv`.

    Columns `trial` and `reward`, or `plate`, `well` and `reward`; a blank reward is not yet measured; `failed` with a
    reason for trials that went wrong; any other columns are passed over. Rows that name only an `arm` answer its oldest
    trials that are out, with a `reward` each, or with `successes` and `trials`, or with `mean`, `sd` and `n`. The same
    result twice counts once. A file that contradicts the log is shown as a table of differences, and nothing of it is
    kept.
    """
    _take(study, tell_file, results_file, style, how)


@main.command("import")
@OF_RESULTS
@FORMAT
@of_study
def import_(study: Study, results_file: str, style: str, **how: Any) -> None:
    """Add earlier observations, rows of `arm` and `reward`: `bestarm import last_year.csv`.

    They inform the answer and cost nothing. The same file twice counts once.
    """
    _take(study, import_file, results_file, style, how)


def _take(study: Study, take: Callable[..., Received], path: str, style: str, how: dict[str, Any]) -> None:
    data, name = read_bytes(path)
    before = set(study.state.changes)
    go_on = "tell the file again, what is kept of it counts once"
    how["source"] = how["source"] or how["as_"] or name
    with accounted(study, go_on):
        try:
            got = take(study, data, name, **how)
        except Contradiction as error:
            print_table([_difference(one, style) for one in error.differences], style)
            first, *_, way = str(error).splitlines()
            n = len(error.differences)
            differ = f"{counted(n, 'result')} differ{'s' if n == 1 else ''}"
            raise click.ClickException(f"{first} {differ}\n{way}") from error
    say(*got.found, *got.notes)
    say(
        f"{got.new} new, {got.known} known already, {got.corrected} corrected, {got.blank} blank, {got.failed} failed"
    )  # fmt: skip
    _say_beyond(got, study)
    say_undo(study, before)
    out = len(study.pending())
    if study.finished:
        say(f"the study is over: {spent(study)}; next: {typed('best')}")
    else:
        say(f"{counted(out, 'trial')} out" + ("" if out else f"; next: {typed('ask')}"))


def _say_beyond(got: Received, study: Study) -> None:
    """Say how many results without a trial answered one, and how many go beyond and what they cost."""
    if not got.answered + got.beyond:
        return
    said = f"by arm: {got.answered} answer trials that were out, {got.beyond} go beyond them"
    if got.cost:
        said += f" and take {got.cost:.10g} from the budget"
        said += ", all that was left" if study.state.left < 1 else ""
    elif got.beyond:
        said += " and cost nothing (--extras spend takes them from the budget)"
    say(said)


def _difference(one: Difference, style: str) -> dict[str, Any]:
    """Return what a file and the log say of a result, as a row; blank where one of them has none."""
    name = id_of(one.name) if isinstance(one.name, int) else one.name
    blank = None if style == "json" else ""
    values = (blank if value is None else value for value in (one.old, one.new))
    return dict(zip(("trial", "arm", "old", "new"), (name, one.arm, *values), strict=True))


@main.command()
@click.argument("trials", metavar="TRIAL...", nargs=-1, required=True)
@REASON
@click.option("--refund/--no-refund", default=None, help="Ask the arm again, or not; as the study says otherwise.")
@WHO
@of_study
def fail(study: Study, trials: tuple[str, ...], why: str, refund: bool | None, source: str | None) -> None:
    """Say that trials could not be made: `bestarm fail T0004 --why spilt`."""
    wanted = named(study.sync(), trials)
    known = [one for one in (locate(study.state, trial) for trial in wanted) if one in study.state.results]
    before = len(study.state.failures)
    study.write(lambda state: failing(state, [(trial, why) for trial in wanted], refund), source)
    say(*(f"{label(one)} has a result, so it has not failed; exclude puts a wrong one right" for one in known))
    say(f"{counted(len(study.state.failures) - before, 'trial')} failed; {_standing(study)}")


@main.command("hand-back")
@click.argument("trials", metavar="TRIAL...", nargs=-1, required=True)
@correction()
def hand_back(study: Study, trials: tuple[str, ...], said: dict[str, Any]) -> None:
    """Give trials back that were asked by mistake and not measured: `bestarm hand-back T0097-T0192`.

    Their price comes back. `ask` hands their arms out again, as new trials, if their round still lasts.
    """
    before = len(study.sync().handed_back)
    study.hand_back(named(study.state, trials), **said)
    say(f"{counted(len(study.state.handed_back) - before, 'trial')} handed back; {_standing(study)}")


@main.command("close-round")
@correction()
def close_round(study: Study, said: dict[str, Any]) -> None:
    """Go on without the answers that are still out: `bestarm close-round --why "plate 3 is lost"`.

    If they come all the same they are kept and count in the answer.
    """
    out = len(study.pending())
    if study.state.round is None:
        say(f"no round is open; {_standing(study)}")
        return
    study.close_round(**said)
    say(f"the round is closed without {counted(out, 'answer')}; {_standing(study)}")


def _standing(study: Study) -> str:
    return f"{spent(study)}, {counted(len(study.pending()), 'trial')} out"
