"""What commands on studies share: which study, in which storage, who says so and why; results in files; Ctrl-C."""

import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bestarm.cli.app import INTERRUPTED, as_typed, insist, say
from bestarm.draw.style import writable
from bestarm.errors import BestArmError, BestArmWarning, InputError, StorageError
from bestarm.numbers import counted as counted

if TYPE_CHECKING:
    from bestarm.study import Storage, Study
    from bestarm.study.state import StudyState

RANGE = re.compile(r"[Tt]?0*(\d{1,18})(?:-|\.\.)[Tt]?0*(\d{1,18})", re.ASCII)  # of trials


def _storage(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    if value:
        return value
    raise click.UsageError("say where studies are kept: --storage lab.db, or set BESTARM_STORAGE to it once for all")


STORAGE = click.option(
    "--storage",
    metavar="URL",
    envvar="BESTARM_STORAGE",
    callback=_storage,
    help="Where studies are: sqlite:///file.db, a file name, postgresql+psycopg://...; or set BESTARM_STORAGE.",
)
STUDY = click.option(
    "-s",
    "--study-name",
    "name",
    metavar="NAME",
    envvar="BESTARM_STUDY",
    help="Which study; or set BESTARM_STUDY. It need not be named where the storage has no other.",
)
ALLOW = click.option(
    "--allow", metavar="PACKAGE", multiple=True, help="Package whose parts may be imported (repeatable)."
)
MOVED = click.option("--arms", "moved", metavar="TABLE", help="Where the table of arms is now, if it was moved.")
WHO = click.option("--who", "--source", "source", metavar="NAME", help="Who says so, kept in the log.")
WHY = click.option("--why", metavar="TEXT", default="", show_default=False, help="The reason, kept in the log.")
REASON = click.option("--why", metavar="TEXT", required=True, help="The reason, kept in the log.")


PULLING = (
    click.option(
        "--pull",
        metavar="'CMD {id}'|MODULE:FUNCTION",
        help="How to observe an arm: a command that prints one number, or a Python function of the arm's id. The id is "
        "a word {id} of the command, or the command reads BESTARM_ID from its environment.",
    ),
    click.option("--pull-timeout", type=float, metavar="SECONDS", help="Longest time for one pull."),
    click.option("--jobs", type=click.IntRange(min=1), default=1, help="Pulls at a time."),
    click.option("--retries", type=click.IntRange(min=0), default=2, help="How often a failed pull is tried again."),
)


def options(*declared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare several options of a command, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(declared), command)


def of_study(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a study, and hand it that study first."""

    @wraps(command)
    def opened(name: str | None, storage: str, allow: tuple[str, ...], moved: str | None, **given: Any) -> Any:
        from bestarm.study import load_study, open_storage

        with warnings_said():
            place = open_storage(storage)
            study = load_study(the_name(name, place), place, allow=allow, arms=moved)
            with accounted(study, f"nothing is half done, `{typed('trials')}` shows what is kept"):
                return command(study, **given)

    return options(STUDY, STORAGE, ALLOW, MOVED)(opened)


def the_name(name: str | None, place: "Storage") -> str:
    """Return the study that is meant: the one that was named, or else the only one there."""
    if name is not None:
        return name
    names = place.names()
    if not names:
        raise StorageError(f"there is no study in {place.place}; is it the right place? create-study begins one")
    if len(names) > 1:
        more = ", ..." if len(names) > 10 else ""
        raise click.UsageError(f"say which study by -s or BESTARM_STUDY; there are {', '.join(names[:10])}{more}")
    return names[0]


def correction(why: Callable[..., Any] = WHY, who: Callable[..., Any] = WHO) -> Callable[..., Any]:
    """Give a command its study, and as `said` who says so and why; what it changed is followed by how to undo it."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def done(study: "Study", **given: Any) -> None:
            before = set(study.state.changes)
            command(study, said={key: given.pop(key) for key in ("why", "source")}, **given)
            say_undo(study, before)

        return options(why, who)(of_study(done))

    return declare


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say our warnings in a line each, as everything else is said."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if issubclass(category, BestArmWarning):
                insist(as_typed(str(message)))
            else:
                usual(message, category, *place, **more)

        warnings.simplefilter("always", BestArmWarning)
        warnings.showwarning = show
        yield


class WholeNumber(click.IntRange):
    """A whole number as people type it: 10000, 1e4 or 10_000."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or say what is expected."""
        if isinstance(value, str):
            from decimal import Decimal

            try:
                number = Decimal(value)
            except ArithmeticError:
                hint = f"; {value.replace(',', '')} is meant?" if re.fullmatch(r"\d{1,3}(,\d{3})+", value) else ""
                self.fail(f"{value!r} is not a whole number{hint}", param, ctx)
            if not number.is_finite() or number != number.to_integral_value() or number.adjusted() > 30:
                self.fail(f"{value!r} is not a whole number that can be used", param, ctx)
            value = int(number)
        return super().convert(value, param, ctx)


COUNT = WholeNumber(min=1)


def number(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Return a number as people type it, told about its decimal point."""
    try:
        return float(value.replace("_", "no number"))
    except ValueError:
        hint = "; write a decimal point, as in 1.5" if "," in value else ""
        raise click.BadParameter(f"{value!r} is not a number{hint}") from None


def spent(study: "Study") -> str:
    """Return how much of the budget is spent, in words."""
    state = study.state
    return f"{state.used:.10g} of {state.budget:.10g} spent"


def typed(*words: str) -> str:
    """Return a command as it is to be typed next, for the study and the storage that this one was typed for."""
    given = ["bestarm", *words]
    for key, flag in (("name", "-s"), ("storage", "--storage")):
        value = on_the_line(key)
        if value is not None and not (key == "storage" and "@" in value):  # a password, perhaps
            given += [flag, shlex.quote(value)]
    return " ".join(given)


def on_the_line(key: str) -> str | None:
    """Return the text of an option that was typed, None where it was not, or came from the environment."""
    context = click.get_current_context()
    optional = any(one.name == key and isinstance(one, click.Option) for one in context.command.params)
    written = optional and context.get_parameter_source(key) is ParameterSource.COMMANDLINE
    return str(context.params[key]) if written else None


def say_undo(study: "Study", before: Iterable[int]) -> None:
    """Say how the changes are taken back that were written since."""
    changes = study.state.changes
    numbers = sorted(number for number in set(changes) - set(before) if not changes[number].again)
    if numbers:
        ways = " and ".join(f"`{typed('undo', str(number))}`" for number in numbers[::-1])
        say(f"{ways} take{'s' if len(numbers) == 1 else ''} that back")


def finished_by_hand(study: "Study") -> str:
    """Return how a study goes on that was finished by hand; nothing where it was not."""
    state = study.state
    last = [
        number for number, change in state.changes.items() if change.kind == "finish" and number not in state.undone
    ]
    if not (state.finished_by_hand and last):
        return ""
    return f"it was finished by hand; `{typed('undo', str(last[-1]))}` takes that back"


@contextmanager
def accounted(study: "Study", go_on: str, *errors: type[BaseException]) -> Iterator[None]:
    """Say what was spent, what is kept and how to go on where Ctrl-C, or else one of some errors, ends a command."""
    wanted = errors or (KeyboardInterrupt,)
    try:
        yield
    except wanted as error:
        with suppress(BestArmError):
            study.sync()
        state = study.state
        out = counted(len(state.open_trials()), "trial")
        insist(f"stopped: {spent(study)}, {counted(int(state.total), 'result')} kept, {out} out; {go_on}")
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(INTERRUPTED) from None
        raise


def read_bytes(path: str) -> tuple[bytes, str]:
    """Return what is in a file, or on standard input, and what to call it."""
    if path == "-":
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), Path(path).name
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {cause(error)}") from error


def cause(error: Exception) -> str:
    """Return why the system refused something."""
    return getattr(error, "strerror", None) or str(error)


class Output:
    """A file that is written whole or not at all, or "-" for stdout; whether it can be is known at once."""

    def __init__(self, path: str, overwrite: bool = True) -> None:
        self.path, self.part = path, Path()
        if path == "-":
            return
        self.target = Path(os.path.realpath(path))  # what a link leads to is replaced, not the link
        try:
            there = self.target.is_file()
            self.device = self.target.exists() and not there  # written to, never replaced
            if self.target.is_dir():
                raise IsADirectoryError("it is a folder")
            if self.target.parent.is_file():
                raise NotADirectoryError(f"{self.target.parent} is no folder")
            if not self.device and (overwrite or not there):
                writable(path)
                part = self.target.with_name(f".{os.urandom(8).hex()}.part")
                part.open("xb").close()
                self.part = part
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be written: {cause(error)}") from error
        if there and not overwrite:
            raise InputError(f"there is a file {path} already, perhaps with results; name another, or add --overwrite")

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *error: object) -> None:
        if self.part.name:
            with suppress(OSError):
                self.part.unlink(missing_ok=True)

    def write(self, data: bytes, otherwise: str = "") -> None:
        """Write everything; where that fails say so, and what is to be done."""
        if self.path == "-":
            click.echo(data, nl=False)
            return
        try:
            with (self.target if self.device else self.part).open("wb") as file:
                file.write(data)
                file.flush()
                if not self.device:
                    os.fsync(file.fileno())
            if not self.device:
                self.part.replace(self.target)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {cause(error)}{otherwise}") from error


def named(state: "StudyState", texts: Iterable[str]) -> list[str]:
    """Return the trials and results that are named, T0003-T0008 standing for six of them."""
    from bestarm.study.trials import id_of

    found: list[str] = []
    for text in texts:
        ends = RANGE.fullmatch(text)
        if ends is None or text in state.results:
            found.append(text)
            continue
        low, high = int(ends[1]), int(ends[2])
        if not 0 < low <= high <= state.handed:
            raise InputError(
                f"{text}: trials that were asked for are expected, the first one first; there are {state.handed} so far"
            )
        found += [id_of(number) for number in range(low, high + 1)]
    return found
