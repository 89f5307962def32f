"""What all commands share: errors in one line, formats, talk on stderr."""

import csv
import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from bestarm.answer import wording
from bestarm.errors import BestArmError
from bestarm.version import __version__


@contextmanager
def said() -> Iterator[None]:
    """Let errors on purpose, and the system's, end with exit code 1 and one line, not with a traceback."""
    try:
        yield
    except BestArmError as error:
        raise click.ClickException(str(error)) from error
    except np.linalg.LinAlgError as error:
        hint = "are they too large, too small or too much alike?"
        raise click.ClickException(f"these features cannot be reckoned with: {error}; {hint}") from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # nobody reads on: click ends quietly
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        raise click.ClickException(f"{where}{error.strerror or error}") from error


class ClearCommand(click.Command):
    """A command whose errors are said in a line."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with said():  # --help is printed here
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with said():
            return super().invoke(ctx)


SECTIONS = {
    "One run": ("run", "plan", "design", "policies"),
    "Studies": ("create-study", "studies", "copy-study", "delete-study", "upgrade", "doctor"),
    "Asking and telling": ("ask", "tell", "import", "fail", "hand-back", "close-round", "run-study"),
    "Answers": ("best", "report", "trials"),
    "Putting right": ("amend", "exclude", "restore", "withdraw", "undo", "finish", "add-arms", "raise-budget"),
}


class Group(click.Group):
    """A group of such commands, listed by what they are for."""

    command_class = ClearCommand

    def main(self, *args: Any, **more: Any) -> Any:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # it was closed; a file opened later must not get its number
                setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        return super().main(*args, **more)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with said():
            return super().make_context(*args, **more)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = tuple(sorted(set(self.commands) - {name for names in SECTIONS.values() for name in names}))
        for title, names in {**SECTIONS, "Research": others}.items():
            rows = [(name, _about(self.commands[name])) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _about(command: click.Command) -> str:
    """Return what a command does: its first sentence, without the example."""
    first = " ".join((command.help or "").split("\n\n")[0].split())
    return first.partition(": `")[0].partition(". ")[0].rstrip(".")


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="bestarm")
def main() -> None:
    """Find the best of K candidates within a fixed budget of noisy observations."""


DIRECTION = click.option(
    "--minimize/--maximize",
    "direction",
    default=False,
    callback=lambda ctx, param, smallest: "minimize" if smallest else "maximize",
    help="The smallest mean is the best, or the largest.",
)
FORMAT = click.option("-f", "--format", "style", type=click.Choice(["table", "json", "csv"]), default="table")


def plain(value: Any) -> Any:
    """Return `value` with NaN and infinities as None: JSON has no word for them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def print_table(rows: list[dict[str, Any]], style: str) -> None:
    click.echo(table_text(rows, style), nl=False)


def table_text(rows: list[dict[str, Any]], style: str) -> str:
    """Return rows as they are printed or written to a file."""
    if style == "json":
        return json.dumps(plain(rows), indent=1) + "\n"
    if style == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
    return "\n".join(wording.aligned(rows)) + "\n"


def print_answer(row: dict[str, Any], more: dict[str, Any], style: str) -> None:
    """Print one row of facts; JSON takes `more` along."""
    if style == "json":
        click.echo(json.dumps(plain(row | more), indent=1))
    elif style == "csv":
        print_table([row], "csv")
    else:
        click.echo("\n".join(wording.lines(wording.facts(row))))


def say(*lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)
