"""To put right what was told or asked: trials, amend, exclude, restore, withdraw, undo, finish, and what is like it."""

from collections.abc import Sequence
from typing import Any

import click

from bestarm.cli.app import main, say, table_text
from bestarm.cli.options import (
    REASON,
    Output,
    correction,
    counted,
    finished_by_hand,
    named,
    number,
    of_study,
    spent,
    typed,
)  # fmt: skip
from bestarm.errors import InputError
from bestarm.study import Study
from bestarm.study.candidates import more_arms
from bestarm.study.corrections import label
from bestarm.study.naming import result_of
from bestarm.study.sheets import timed
from bestarm.study.table import COLUMNS
from bestarm.study.trials import number_of

Said = dict[str, Any]  # who says so, and why
NUMBERS = {"ignore_unknown_options": True}  # -1.5 is a value, not options


@main.command()
@click.option("-f", "--format", "style", type=click.Choice(["table", "json", "csv"]), help="table, or by FILE's name.")
@click.option(
    "-o", "--out", "--output", "out", default="-", metavar="FILE", help="File to write or replace; - is stdout."
)
@of_study
def trials(study: Study, style: str | None, out: str) -> None:
    """Show every trial and result, what came of it and what was corrected: `bestarm trials -o trials.csv`.

    Times are in UTC, with their zone.
    """
    style = style or next((kind for kind in ("json", "csv") if out.lower().endswith(f".{kind}")), "table")
    rows = [{**row, "time": timed(row["time"])} for row in study.trials()]
    if not rows:
        say("nothing was asked yet, and nothing told")
    if style != "json":
        rows = [{key: "" if cell is None else cell for key, cell in row.items()} for row in rows]
    with Output(out) as file:
        text = table_text(rows, style) if rows else "[]\n" if style == "json" else ",".join(COLUMNS) + "\n"
        if rows or style != "table":
            file.write(text.encode())


@main.command(context_settings=NUMBERS)
@click.argument("trial")
@click.argument("value", callback=number)
@correction(REASON)
def amend(study: Study, trial: str, value: float, said: Said) -> None:
    """Let another value hold for a result: `bestarm amend T0004 5.1 --why "decimal point"`.

    The first value stays in the log. Of several 0/1 results told as a sum, the value is the number of successes.
    """
    old = result_of(study.sync(), trial)
    study.amend(trial, value, **said)
    if old.sum == value:
        say(f"{label(old.name)} of arm {study.state.ids[old.arm]!r} is {value:.10g} already")
        return
    say(f"{label(old.name)} of arm {study.state.ids[old.arm]!r} is {value:.10g} now, it was {old.sum:.10g}")


@main.command()
@click.argument("trials", metavar="[TRIAL]...", nargs=-1)
@click.option("--arm", metavar="ARM", help="All results of this arm.")
@click.option("--source", "by", metavar="NAME", help="All results from this source.")
@click.option("--since", metavar="TIME", help="All results told since then, such as 2026-05-01T09:30+02:00.")
@click.option("--again", is_flag=True, help="Measure them again: what they cost comes back to the budget.")
@correction(REASON, click.option("--who", "source", metavar="NAME", help="Who says so, kept in the log."))
def exclude(study: Study, trials: tuple[str, ...], again: bool, said: Said, **chosen: Any) -> None:
    """Let results not count: `bestarm exclude T0004 T0007 --why "wrong buffer"`.

    They are named (T0003-T0008 stands for those of the six that have a result), or chosen by arm, source and time
    together. Their pulls stay spent and are not asked again, unless with --again.
    """
    wanted = _with_results(study, trials)
    count = study.exclude(wanted, again=again, **chosen, **said)
    say(f"{counted(count, 'result')} excluded; {int(study.state.total)} count, {spent(study)}")
    if count and again:
        say(
            "what they cost came back; where their round still lasts, their arms are asked again; restore takes them in"
        )


@main.command()
@click.argument("trials", metavar="TRIAL...", nargs=-1, required=True)
@correction()
def restore(study: Study, trials: tuple[str, ...], said: Said) -> None:
    """Let excluded results count again: `bestarm restore T0004`."""
    wanted = _with_results(study, trials)
    count = study.restore(wanted, **said)
    say(f"{counted(count, 'result')} restored; {int(study.state.total)} count")


@main.command()
@click.argument("arm")
@correction(REASON)
def withdraw(study: Study, arm: str, said: Said) -> None:
    """Take an arm out of the race: `bestarm withdraw gel7 --why "cannot be made"`.

    The policy starts anew on the others with what is left of the budget; what was told of the arm is kept.
    """
    there, out = arm in study.arms, study.state.open_trials()
    study.withdraw(arm, **said)
    say(f"arm {arm!r} is withdrawn{'' if there else ' already'}; {_racing(study)}")
    _say_late(study, out)


@main.command()
@click.argument("record", type=click.IntRange(min=0), required=False)
@correction()
def undo(study: Study, record: int | None, said: Said) -> None:
    """Take back the last withdrawal, correction or finish, or the one of a RECORD: `bestarm undo`."""
    out = study.sync().open_trials()
    number = study.undo(record, **said)
    change, results = study.state.changes[number], study.state.results
    what = ", ".join([*(study.state.ids[arm] for arm in change.arms), *(label(name) for name in list(change.sets)[:3])])
    more = f" and {len(change.sets) - 3} more" if len(change.sets) > 3 else ""
    if change.kind == "amend" and len(change.sets) == 1:
        more = f", which is {results[next(iter(change.sets))].sum:.10g} again"
    because = f" (its reason was: {change.why})" if change.why else ""
    say(f"record {number} is undone: {change.kind}{f' of {what}' if what else ''}{more}{because}")
    _say_late(study, out)


@main.command()
@correction(REASON)
def finish(study: Study, said: Said) -> None:
    """Ask for nothing more: `bestarm finish --why "good enough"`."""
    already = study.sync().finished_by_hand
    study.finish(**said)
    say(f"the study is finished{' already' if already else ''}: {spent(study)}; next: {typed('best')}")


@main.command("add-arms")
@click.argument("table", metavar="TABLE")
@click.option("--id", "id_column", metavar="COLUMN", help="Column that names the arms; as in the study otherwise.")
@click.option("--cost", metavar="COLUMN", help="Column with the price of a pull; as in the study otherwise.")
@correction()
def add_arms(study: Study, table: str, id_column: str | None, cost: str | None, said: Said) -> None:
    """Put the arms of another table into the race: `bestarm add-arms more_conditions.csv`.

    The table has the columns of the study's own, which become features in the same way. The policy starts anew on all
    arms with what is left of the budget.
    """
    arms = more_arms(study.sync(), table, id_column, cost)
    out = study.state.open_trials()
    study.add_arms(arms, **said)
    say(f"{counted(len(arms), 'arm')} added, {', '.join(arms.ids[:3])}{', ...' if len(arms) > 3 else ''}")
    _say_late(study, out)
    say(f"{_racing(study)}; {spent(study)}; next: {typed('ask')}")


@main.command("raise-budget", context_settings=NUMBERS)
@click.argument("budget", callback=number)
@correction()
def raise_budget(study: Study, budget: float, said: Said) -> None:
    """Change the budget to a larger one: `bestarm raise-budget 960`.

    The policy plans with it when its present plan is done.
    """
    before = study.budget
    study.raise_budget(budget, **said)
    go_on = finished_by_hand(study) or f"next: {typed('ask')}"
    say(f"the budget is {study.state.budget:.10g}, it was {before:.10g}; {spent(study)}; {go_on}")


def _with_results(study: Study, texts: Sequence[str]) -> list[str]:
    """Return the results that are named; trials of a range that have none are passed over, and named."""
    found, without = list[str](), list[str]()
    state = study.sync()
    for text in texts:
        some = named(state, [text])
        there = [one for one in some if some == [text] or number_of(one) in state.results]
        found += there
        without += [one for one in some if one not in set(there)]
    if without:
        many = f" and {len(without) - 3} more" if len(without) > 3 else ""
        said = f"{', '.join(without[:3])}{many} {'has' if len(without) == 1 else 'have'} no result"
        if not found:
            raise InputError(f"{said}: there is nothing to put right")
        say(f"{said}, and {'is' if len(without) == 1 else 'are'} passed over")
    return found


def _racing(study: Study) -> str:
    left = sum(study.state.present)
    return f"{left} arm{' is' if left == 1 else 's are'} in the race"


def _say_late(study: Study, out: Sequence[int]) -> None:
    """Say which trials are not waited for any more, since the policy has started anew."""
    late = len(set(out) - set(study.state.open_trials()))
    if late:
        said = "1 trial that is out is" if late == 1 else f"{late} trials that are out are"
        say(f"{said} not waited for: tell what comes, it counts; hand-back returns what will not be measured")
