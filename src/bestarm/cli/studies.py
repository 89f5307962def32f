"""Studies as a whole: create-study, studies, copy-study, delete-study, upgrade, doctor."""

import shlex
import warnings
from importlib.util import find_spec
from typing import Any

import click
from click.core import ParameterSource

from bestarm import plugins
from bestarm.cli.app import DIRECTION, FORMAT, main, print_table, say, stopped_with
from bestarm.cli.options import (
    ALLOW,
    COUNT,
    STORAGE,
    STUDY,
    counted,
    on_the_line,
    spent,
    the_name,
    typed,
    warnings_said,
)
from bestarm.cli.tables import cautions, reading, table_options
from bestarm.errors import BestArmError, BestArmWarning, InputError, StorageError
from bestarm.study import Storage, Study, create_study, delete_study, load_study, open_storage
from bestarm.study.copying import copy_study, upgrade_storage
from bestarm.study.doctor import examine
from bestarm.study.salvage import salvage
from bestarm.study.successor import create_from
from bestarm.tables.arms import Arms

SETTINGS = (
    "budget", "policy", "model", "direction", "noise_variance", "seed", "batch", "plate", "rounds", "refund", "extra",
    "unit",
)  # fmt: skip


@main.command("create-study")
@click.argument("name")
@click.option("--arms", "arms_file", metavar="ARMS.csv|.xlsx|.parquet", help="Table of arms, a row each; - is stdin.")
@table_options()
@click.option("--cost", metavar="COLUMN", help="Column with the price of a pull; the budget is then money.")
@click.option("--by-reference", is_flag=True, help="Keep the place of a large table in the log, not a copy of it.")
@click.option("--budget", type=float, help="Pulls to spend, or money with --cost; never more.")
@click.option("--batch", type=COUNT, help="Trials handed out at once, such as a plate of 96.")
@click.option(
    "--plate", metavar="WELLS", help="Trials are asked by plates: of 96 wells, 24, 384 ..., or ROWSxCOLUMNS of them."
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often to wait for results; for the policy auto.")
@click.option(
    "--policy",
    help="A policy of `bestarm policies`, NAME:setting=value, or your own, package.module:Class:setting=value; the "
    "model's own, or auto without --model, otherwise.",
)
@click.option("--model", help="Reward model: linear, logistic, poisson, means or forest; auto needs none.")
@DIRECTION
@click.option("--noise-variance", type=float, help="Variance of one reward, if known.")
@click.option("--unit", metavar="TEXT", help="Unit of a reward, such as mg/l.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random; drawn and kept otherwise.")
@click.option("--refund/--no-refund", default=True, help="Ask a failed trial's arm again, or take it for lost.")
@click.option("--extra/--no-extra", default=True, help="Take results of arms nobody asked for, or refuse them.")
@click.option("--from", "old", metavar="STUDY", help="Take arms, settings and results of this one.")
@click.option("--if-exists", type=click.Choice(["error", "load"]), default="error", help="load: be content with it.")
@ALLOW
@STORAGE
@click.pass_context
def create(
    ctx: click.Context, /, name: str, storage: str, allow: tuple[str, ...], old: str | None, **asked: Any
) -> None:  # fmt: skip
    """Begin a study: `bestarm create-study assay --arms conditions.csv --id code --budget 480 --batch 96`.

    Was something wrong from the start? `bestarm create-study assay2 --from assay --minimize` begins another with the
    arms, settings and results of the first and what is left of its budget, but for what is said: --minimize or
    --maximize, --model, --feature, --exclude, and so on.
    """
    given = {key for key in asked if ctx.get_parameter_source(key) is not ParameterSource.DEFAULT}
    seen = "the study is begun whole or not at all; `bestarm studies` says whether it was"
    with warnings_said(), stopped_with(seen):
        place = open_storage(storage)
        if old is None:
            study = _fresh(name, place, asked)
        else:
            study = _successor(name, place, load_study(old, place, allow=allow), asked, given)
        state = study.state
        policy = state.first.get("policy_name", "a policy")
        which = [] if place.names() == [name] else ["-s", shlex.quote(name)]
        for package in sorted(set(state.allow) - plugins.importable()):
            which += ["--allow", package]
        said = f"study {name!r}: {policy}, budget {state.budget:.10g}, seed {state.seed}"
        first = "batch1.csv" if not state.options["plate"] else "plate1.xlsx" if find_spec("openpyxl") else "plate1.csv"
        say(f"{said}; next: {typed('ask', '-o', first, *which)}")


def _fresh(name: str, place: Storage, asked: dict[str, Any]) -> Study:
    for key, what in (("arms_file", "--arms"), ("budget", "--budget")):
        if asked[key] is None:
            raise click.UsageError(f"Missing option '{what}'; a study begun --from another does without.")
    read, path = reading(asked), asked["arms_file"]
    if asked["by_reference"] and path == "-":
        raise click.UsageError("--by-reference needs a file: what comes on standard input has no place")
    arms = path if asked["by_reference"] else Arms.from_file(path, **read)
    study = create_study(
        arms, study_name=name, storage=place, load_if_exists=asked["if_exists"] == "load",
        read=read if asked["by_reference"] else None,
        labels=asked["label"], **{key: asked[key] for key in SETTINGS},
    )  # fmt: skip
    if isinstance(arms, Arms):
        say(f"{arms!r}".removeprefix("Arms").strip("()"), *arms.notes, *cautions(arms, read.get("id")))
    else:
        arms, features = len(study.state.ids), len(study.state.names)
        say(f"{counted(arms, 'arm')}, {counted(features, 'feature')}, kept in {path}: leave it as it is")
    if asked["batch"] and asked["cost"] is None and asked["batch"] > study.state.budget:
        whole = f"the whole budget of {study.state.budget:.10g}"
        say(f"a batch of {asked['batch']} is above {whole}: all is asked at once, and nothing learnt on the way")
    return study


def _successor(name: str, place: Storage, old: Study, asked: dict[str, Any], given: set[str]) -> Study:
    if asked["by_reference"]:
        raise click.UsageError("--by-reference goes with a table of a new study; one begun --from another has its arms")
    settings = {key: asked[key] for key in SETTINGS if key in given}
    study = create_from(
        old, name, place, arms=asked["arms_file"], read=reading(asked, given),
        load_if_exists=asked["if_exists"] == "load", **settings,
    )  # fmt: skip
    left = "" if "budget" in given else f"; its budget is what is left, {old.name!r} has {spent(old)}"
    say(f"{counted(int(study.state.total), 'result')} of {old.name!r} taken along, which cost nothing{left}")
    out = len(old.state.open_trials())
    if out:
        say(
            f"{counted(out, 'trial')} of {old.name!r} {'is' if out == 1 else 'are'} out: tell what comes of them to "
            f"{old.name!r}; this command once more, with --if-exists load, takes it along"
        )
    return study


@main.command()
@STORAGE
@FORMAT
def studies(storage: str, style: str) -> None:
    """List the studies of a storage, with how far each has come: `bestarm studies -f json`."""
    place = open_storage(storage)
    rows, wrong = [], []
    with warnings_said():
        for name in place.names():
            try:
                rows.append(_row(load_study(name, place)))
            except BestArmError as error:
                wrong.append(f"study {name!r} cannot be read ({error}); `bestarm doctor` says more")
    if rows:
        print_table(rows, style)
    elif not wrong:
        say("there are no studies here")
    say(*wrong)
    if wrong:
        raise click.exceptions.Exit(1)


def _row(study: Study) -> dict[str, Any]:
    state = study.state
    return {
        "study": study.name, "arms": sum(state.present), "policy": state.first.get("policy_name", "a policy"),
        "budget": state.budget, "spent": state.used, "results": int(state.total), "pending": len(state.open_trials()),
        "failed": len(state.failures), "state": "over" if state.over else f"round {max(state.rounds, 1)}",
        "ahead": study.best_arm if state.total else "-",
    }  # fmt: skip


@main.command("copy-study")
@click.argument("what", metavar="[NAME]", required=False)
@STUDY
@click.option("--to", metavar="URL", required=True, help="The storage to copy it to.")
@click.option("--as", "new", metavar="NEW", help="What to call the copy; the same otherwise.")
@STORAGE
def copy(what: str | None, name: str | None, to: str, new: str | None, storage: str) -> None:
    """Copy a study to another storage and compare the records: `bestarm copy-study assay --to backup.jsonl`."""
    if what is not None and name is not None and what != name and on_the_line("name"):
        raise click.UsageError(f"name the study once: it is {what!r}, and {name!r} by -s")
    place, target = open_storage(storage), open_storage(to)
    name = the_name(what or name, place)
    with stopped_with(f"study {name!r} is as it was; the same command finishes the copy that was begun"):
        records = copy_study(name, place, target, new)
    many = counted(records, "record")
    say(f"study {name!r} is copied to {target.place} as {new or name!r}: {many}, read again and compared")


@main.command("delete-study")
@STUDY
@click.option("--yes", is_flag=True, help="Forget it; without this nothing is done.")
@STORAGE
def delete(name: str | None, yes: bool, storage: str) -> None:
    """Forget a study and all its results: `bestarm delete-study -s assay --yes`."""
    place = open_storage(storage)
    name = the_name(name, place)
    if not yes:
        if name not in place.names():
            load_study(name, place)  # says which there are
        raise InputError(f"this would forget study {name!r} and its {_told(name, place)}; add --yes to do it")
    with stopped_with(f"`bestarm studies` says whether {name!r} is still there"):
        delete_study(name, place)
    say(f"study {name!r} is deleted")


@main.command()
@click.option("--copy", metavar="URL", help="Where the copy goes; a journal beside the storage's file otherwise.")
@STORAGE
def upgrade(copy: str | None, storage: str) -> None:
    """Make all studies of log version 1 ones of version 2, after a copy: `bestarm upgrade --storage old.jsonl`."""
    with warnings_said():
        warnings.filterwarnings("ignore", "study .* is of version 1", BestArmWarning)  # not for long
        with stopped_with("no study is half upgraded; the same command goes on"):
            names, place = upgrade_storage(storage, copy)
    if not names:
        say("every study is of log version 2 already")
        return
    count = "1 study is" if len(names) == 1 else f"{len(names)} studies are"
    say(f"{count} of log version 2 now: {', '.join(names)}", f"what was there before is kept in {place}")


@main.command()
@click.option("--salvage", "out", metavar="OUT", help="Storage to write what is whole of damaged studies to.")
@click.option("-s", "--study-name", "name", metavar="NAME", help="Look at this study only.")
@STORAGE
@FORMAT
def doctor(out: str | None, name: str | None, storage: str, style: str) -> None:
    """Read a storage and say what is wrong and what to do: `bestarm doctor --salvage rescued.jsonl`.

    The exit code is 1 if something is wrong. With --salvage what is whole of the study named by -s, or else of every
    study that cannot be read, is written to another storage; what is left out is said.
    """
    place = open_storage(storage)
    with warnings_said():
        found = examine(place)
    rows = [
        {"study": one.study, "state": "wrong" if one.wrong else "fine" if one.study else "note", "says": one.says}
        for one in found if name is None or one.study in (name, "")
    ]  # fmt: skip
    if name is not None and not any(row["study"] for row in rows):
        load_study(name, place)  # says which there are
    print_table(rows, style)
    wrong = [row["study"] for row in rows if row["state"] == "wrong"]
    if out is not None:
        _salvage(place, list(dict.fromkeys(filter(None, wrong))) if name is None else [name], out)
    elif wrong:
        raise click.exceptions.Exit(1)


def _salvage(place: Storage, damaged: list[str], out: str) -> None:
    try:
        place.names()
    except BestArmError as error:
        raise StorageError(f"nothing of {place.place} can be salvaged, since it cannot be opened: {error}") from error
    if not damaged:
        say("no study is damaged, so nothing was written")
    target = open_storage(out)
    for study in damaged:
        again = f"what was read is as it was; delete {study!r} in {target.place} if it is there, and try again"
        with stopped_with(again):
            left_out = salvage(study, place, target)
        say(f"study {study!r}: what is whole is in {target.place}", *(f"left out: {line}" for line in left_out))


def _told(name: str, place: Storage) -> Any:
    try:
        return counted(int(load_study(name, place).state.total), "result")
    except BestArmError:
        return "unreadable results"
