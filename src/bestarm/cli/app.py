"""What all commands share: errors in one line, formats, talk on stderr."""

import csv
import errno
import io
import json
import logging
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from bestarm import progress
from bestarm.answer import wording
from bestarm.cli.commands import COMMANDS, HOMES
from bestarm.errors import BestArmError, PullError
from bestarm.version import __version__


@contextmanager
def said() -> Iterator[None]:
    """Let errors on purpose, and the system's, end with exit code 1 and one line, not with a traceback."""
    try:
        with stopped_with("nothing was changed"):
            yield
    except BestArmError as error:
        own = isinstance(error, PullError)  # a person's words, and their program's
        words = str(error) if own else as_typed(str(error))
        raise click.ClickException(words) from error
    except ValueError as error:
        numpy = sys.modules.get("numpy")  # which not every command needs
        if numpy is None or not isinstance(error, numpy.linalg.LinAlgError):
            raise
        hint = "are they too large, too small or too much alike?"
        raise click.ClickException(f"these features cannot be reckoned with: {error}; {hint}") from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # nobody reads on: click ends quietly
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        raise click.ClickException(f"{where}{error.strerror or error}") from error


@contextmanager
def stopped_with(words: str) -> Iterator[None]:
    """Say where Ctrl-C ends a command what is kept and how to go on; the exit code is that of an interrupt, 130."""
    try:
        yield
    except KeyboardInterrupt:
        insist(*[""] * sys.stderr.isatty(), f"stopped: {words}")
        raise SystemExit(INTERRUPTED) from None


INTERRUPTED = 130  # 128 and the number of the signal
# What options are called in Python, where that is not the option's own name.
ARGUMENTS = {
    "id_column": ("id",), "feature": ("features", "columns"), "label": ("labels",), "prior_variance": ("prior",),
    "seed": ("rng",), "jobs": ("n_jobs",), "if_exists": ("load_if_exists",), "pull_timeout": ("timeout",),
    "new": ("as_",),
}  # fmt: skip


def as_typed(message: str) -> str:
    """Return a message that calls the options of the command as they are typed, where it calls them as Python does.

    That is `noise_variance`, `id=`, and at the beginning `budget must be ...`; what stands in quotes is left alone.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return message
    for command in main.list_commands(context):
        if "-" in command:
            message = re.sub(rf"(?<![\w.'\"-]){command.replace('-', '_')}(?!\w)", command, message)
    for option in context.command.params:
        if isinstance(option, click.Option) and option.name and not option.hidden:
            flag = max(option.opts, key=len)
            for name in (option.name, *ARGUMENTS.get(option.name, ())):
                at, end = rf"(?<![\w.'\"?&/-]){name}", r"(?:=|(?!\w))" if "_" in name else "="
                message = re.sub(rf"{at}=True(?!\w)", flag, message)
                message = re.sub(rf"{at}='?(?=\w)([\w.-]*)'?", rf"{flag} \1", message)
                message = re.sub(rf"{at}{end}", flag, message)
                message = re.sub(rf"^(the )?{name}(?= must\b)", flag, message)
                message = re.sub(rf"{flag}( \S+)?(, | or ){flag}(?![\w-])", rf"{flag}\1", message)  # both were named
                message = message.replace(f"{flag}, {flag}", flag)
    return message


class Lines(logging.Handler):
    """What the log says, as lines on stderr; what was found in a table the commands say themselves."""

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "note"):
            progress.write(record.getMessage())


@contextmanager
def heard() -> Iterator[None]:
    """Let the log `bestarm` say its warnings on stderr; with -v also how it goes, with -q its errors alone."""
    log, lines = logging.getLogger("bestarm"), Lines()
    before = log.level
    log.addHandler(lines)
    log.setLevel({-1: logging.ERROR, 0: before, 1: logging.INFO}[loudness()])
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(before)


def loudness() -> int:
    """Return 1 with -v, -1 with -q, else 0."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else int(context.meta.get(LOUDNESS, 0))


def _louder(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[LOUDNESS] = 1 if param.name == "verbose" else -1


LOUDNESS = "bestarm.loudness"


def loud_options() -> list[click.Parameter]:
    """Return -v and -q, which go before a command and behind it."""
    how: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _louder, "show_default": False}
    more, less = "Say how it goes, also where no bar is seen.", "Say nothing but the answer, warnings and errors."
    return [click.Option(["-v", "--verbose"], help=more, **how), click.Option(["-q", "--quiet"], help=less, **how)]


class ClearCommand(click.Command):
    """A command whose errors are said in a line, and who talks more or less."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += loud_options()

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with said():  # --help is printed here
            try:
                return super().make_context(*args, **more)
            except click.UsageError as error:
                if way := self._way_out(error):
                    raise click.UsageError(f"{error.message.rstrip('.')}. {way}", error.ctx) from error
                raise

    def _way_out(self, error: click.UsageError) -> str:
        """Return what to type instead, for what is often typed; "" for anything else."""
        if isinstance(error, click.NoSuchOption) and error.ctx is not None:
            alone = [one.make_metavar(error.ctx) for one in self.params if isinstance(one, click.Argument)]
            wanted = [one for one in alone if one.strip("[]").lower() == error.option_name.lstrip("-")]
            return f"It is written alone: bestarm {self.name} {wanted[0]}" if wanted else ""
        quoted = "extra argument" in error.message and "{" in error.message
        return "Quotes keep a command together: --pull './measure {id}'" if quoted else ""

    def invoke(self, ctx: click.Context) -> Any:
        with said(), heard():
            return super().invoke(ctx)


class Group(click.Group):
    """A group of such commands, listed by what they are for; a command's module is imported when it is named."""

    command_class = ClearCommand

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name in HOMES:
            import_module(f"bestarm.cli.{HOMES[cmd_name]}")
        return self.commands.get(cmd_name)

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return sorted({*self.commands, *HOMES})

    def loaded(self) -> dict[str, click.Command]:
        """Return all commands by name."""
        found = {name: self.get_command(None, name) for name in self.list_commands(None)}
        return {name: command for name, command in found.items() if command is not None}

    def main(self, *args: Any, **more: Any) -> Any:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # it was closed; a file opened later must not get its number
                setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        return super().main(*args, **more)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with said():
            try:
                return super().make_context(*args, **more)
            except click.NoSuchOption as error:
                way = "Options of a command go behind it: bestarm best -s NAME"
                raise click.UsageError(f"{error.message.rstrip('.')}. {way}", error.ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, some in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, about) for name, (_, about) in some.items()])


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="bestarm")
def main() -> None:
    """Find the best of K candidates within a fixed budget of noisy observations."""


main.params += loud_options()

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
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    """Say what is good to know; -q leaves it out."""
    if loudness() >= 0:
        insist(*lines)


def insist(*lines: str) -> None:
    """Say what must not be missed."""
    for line in lines:
        click.echo(line, err=True)
