"""What makes one observation: a person's command in a process group of its own, or a Python function."""

import atexit
import inspect
import math
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from bestarm import templates
from bestarm.errors import InputError, PullError
from bestarm.numbers import LARGEST_VALUE, counted, real
from bestarm.numbers import shown as in_short
from bestarm.templates import shortened
from bestarm.texts import module as imported

POSIX = os.name == "posix"
MOMENT = 1.0  # seconds that a process group has to end after SIGTERM
KEPT = 1 << 16  # bytes of what a command prints that are kept
ENDING = ("SIGTERM", "SIGHUP")  # signals
OURS = ("BESTARM_ID", "BESTARM_ARM", "BESTARM_TRIAL", "BESTARM_STUDY")

_running: set["_Process"] = set()
_beginning = threading.Lock()  # held from before a command begins until it is in `_running`


class Command:
    """A person's command as a function of an arm's id: it is run by the shell and prints one number.

    The id is in the environment, as BESTARM_ID and, the same, as BESTARM_ARM, beside BESTARM_TRIAL and BESTARM_STUDY
    where there is one; {id} in the template is an argument, never text for the shell. What the command began is a
    process group, which is ended after `timeout` seconds, on Ctrl-C and when this process ends; a program that leaves
    its group, as `setsid` does, is beyond reach, and so is one that a command that ended in time left behind.
    """

    takes_trial = True  # may be called with a trial and a study

    def __init__(self, template: str, timeout: float | None = None) -> None:
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise InputError(f"the timeout of a pull must be a number of seconds above 0; given {timeout}")
        self.template, self.timeout = templates.prepare(template), timeout
        if not POSIX and (self.template.argument or re.search("[%!]BESTARM_", template)):
            raise InputError(
                "an id cannot be part of a pull command here: let the program read BESTARM_ID from its environment "
                "('measure.exe & rem BESTARM_ID'), or name a Python function as MODULE:FUNCTION"
            )

    def check_ids(self, ids: Iterable[str]) -> None:
        """Raise InputError for the first id that this command cannot be run for."""
        templates.check_ids(self.template, ids)

    def check_programs(self) -> None:
        """Raise InputError where a program of this command is not there or may not be executed."""
        for name, script in templates.programs(self.template) if POSIX else ():
            why = _unusable(name, script)
            if why:
                raise InputError(f"the pull command {shortened(self.template.text, 200)!r} cannot be run: {why}")

    def __call__(self, arm_id: str, trial: str | None = None, study: str | None = None) -> float:
        """Return the number that the command prints for an arm, or raise PullError saying why there is none."""
        shown = f"arm {shortened(arm_id)!r}: `{shortened(self.template.text, 200)}`"
        try:
            self.check_ids([arm_id])
        except InputError as error:
            raise PullError(str(error)) from error
        with ExitStack() as stack:
            with _undisturbed(), _beginning:
                process = stack.enter_context(_Process(self._start(shown, arm_id, trial, study), self))
            ended = process.wait(self.timeout)
        said = _said(bytes(process.errors))
        if process.too_much:
            raise PullError(f"{shown} must print one number on stdout; it printed more than {KEPT:,} bytes")
        if not ended:
            raise PullError(f"{shown} did not finish in {counted(self.timeout or 0, 'second')}{said}")
        if process.code < 0:
            raise PullError(f"{shown} was ended by signal {-process.code}{said}")
        if process.code:
            raise PullError(f"{shown} failed with exit code {process.code}{said or ': nothing on stderr'}")
        try:
            return checked(float(bytes(process.output).replace(b"_", b"no number")), shown)  # Python reads 1_000
        except ValueError as error:
            words = process.output.decode(errors="backslashreplace").strip()
            what = repr(shortened(words)) if words else "nothing"
            raise PullError(f"{shown} must print one number on stdout; it printed {what}{said}") from error

    def stop(self) -> None:
        """End what this command runs now, all of it at a time."""
        stop_all(self)

    def _start(self, shown: str, arm_id: str, trial: str | None, study: str | None) -> "subprocess.Popen[bytes]":
        given = dict(zip(OURS, (arm_id, arm_id, trial, study), strict=True))
        environment = {key: value for key, value in os.environ.items() if key not in OURS}
        environment |= {key: value for key, value in given.items() if value is not None}
        try:
            return subprocess.Popen(
                self.template.line,
                shell=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=POSIX,
            )
        except (OSError, ValueError) as error:  # UnicodeEncodeError is a ValueError
            why = f"{type(error).__name__}: {shortened(str(error), 200)}"
            raise PullError(f"{shown} could not be run: {why}") from error


class _Process:
    """A running command: what it printed, of which only so much is kept, and its end."""

    def __init__(self, popen: "subprocess.Popen[bytes]", command: Command) -> None:
        self.popen, self.group, self.command = popen, popen.pid, command
        self.output, self.errors, self.too_much = bytearray(), bytearray(), False
        self.readers = [
            threading.Thread(target=self._read, args=(pipe, take), daemon=True)
            for pipe, take in ((popen.stdout, self._take), (popen.stderr, self._take_errors))
        ]
        self.over = False

    @property
    def code(self) -> int:
        return int(self.popen.returncode)

    def __enter__(self) -> "_Process":
        _running.add(self)
        for reader in self.readers:
            reader.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self.over:
            _end([self])  # if even this is interrupted, stop_all does it again
        _running.discard(self)

    def wait(self, timeout: float | None) -> bool:
        """Wait until all is printed and the command has ended; return whether it did in time."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        for reader in self.readers:
            reader.join(None if timeout is None else min(max(0.0, end - time.monotonic()), threading.TIMEOUT_MAX))
            if reader.is_alive() or self.too_much:
                return False
        try:
            self.popen.wait(None if timeout is None else max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        self.over = True
        return True

    def reap(self) -> None:
        """Wait a moment for what is left of a process group that was ended."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(MOMENT)
        for reader in self.readers:
            reader.join(MOMENT)

    def send(self, number: int) -> bool:
        """Send a signal to the group, 0 only to look; return whether there is one."""
        ended = self.popen.poll() is not None  # and is then no longer of the group
        if not POSIX:
            self.popen.kill()
            return self.popen.poll() is None
        try:
            os.killpg(self.group, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # some systems say so of a group of ended processes
            return self.popen.poll() is None
        return not ended or _at_work(self.group)

    def _read(self, pipe: IO[bytes], take: Callable[[bytes], bool]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                if not take(chunk):
                    return

    def _take(self, chunk: bytes) -> bool:
        self.too_much = len(self.output) + len(chunk) > KEPT
        if not self.too_much:
            self.output += chunk
        return not self.too_much

    def _take_errors(self, chunk: bytes) -> bool:
        self.errors += chunk
        del self.errors[:-KEPT]
        return True


def _at_work(group: int) -> bool:
    """Return whether a process group has a process that has not ended, as far as Linux says: else whether it is there.

    One that has ended stays in its group until its parent takes note, which a container's first process may never do.
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            state, _, its_group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if its_group == str(group) and state not in "ZX":
                return True
    return not Path("/proc/self/stat").exists()


@atexit.register
def stop_all(command: Command | None = None) -> None:
    """End every command that still runs, as when a program ends while its threads pull; or one of them."""
    held = _beginning.acquire(timeout=MOMENT)  # what has begun is known then; a fork may have left it locked for ever
    mine = [process for process in list(_running) if command is None or process.command is command]
    if held:
        _beginning.release()
    _end(mine)


def _end(processes: Iterable[_Process]) -> None:
    """End whole process groups: by SIGTERM, and by SIGKILL after a moment."""
    left = processes = list(processes)
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        end = time.monotonic() + MOMENT
        left = [process for process in left if process.send(number)]
        while left and time.monotonic() < end:
            time.sleep(0.01)
            left = [process for process in left if process.send(0)]  # only a look
    for process in processes:
        process.reap()


def leave(number: int, frame: Any) -> None:
    """End this process by a signal as an error does, so that what is to be done at its end is done."""
    raise SystemExit(128 + number)


@contextmanager
def signals_to(
    handler: Callable[[int, Any], Any], names: Iterable[str], wanted: Callable[[Any], bool]
) -> Iterator[None]:
    """Let some signals go to another handler inside: those whose own is `wanted`, and in the main thread only."""
    there = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        there = []
    before = {number: own for number in there if wanted(own := signal.getsignal(number))}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, own in before.items():
            signal.signal(number, own)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back signals while a command begins: nobody would end one that is not noted down yet."""
    caught: list[int] = []
    try:
        with signals_to(lambda number, frame: caught.append(number), ("SIGINT", *ENDING), callable):
            yield
    finally:
        for number in caught[:1]:
            signal.raise_signal(number)


def ended_by_signals() -> AbstractContextManager[None]:
    """Let SIGTERM and a closed terminal end this process as Ctrl-C does, so that no command outlives it."""
    return signals_to(leave, ENDING, lambda own: own == signal.SIG_DFL)


def function(path: str) -> Callable[[str], Any]:
    """Return the function named by "module:function", which takes an arm's id and returns a number."""
    module, _, name = path.partition(":")
    try:
        found = getattr(imported(module), name)
    except (Exception, SystemExit) as error:  # the module is run by this, and may raise anything
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"a pull function is named module:function; {path!r} cannot be loaded: {why}") from error
    if not callable(found):
        raise InputError(f"{path!r} is not a function")
    if inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(type(found).__call__):
        raise InputError(
            f"{path!r} is a coroutine function, which only Study.run_async can call; give a plain function"
        )

    def observe(arm: str) -> Any:
        shown = f"arm {shortened(arm)!r}: {path}"
        try:
            value = found(arm)
        except (Exception, SystemExit) as error:
            raise PullError(f"{shown} failed: {type(error).__name__}: {shortened(str(error), 500)}") from error
        return value if inspect.isawaitable(value) else checked(value, shown)  # whoever makes pulls refuses those

    return observe


def named(pull: str, timeout: float | None = None, ids: Iterable[str] = ()) -> Callable[..., float]:
    """Return a Python function named as MODULE:FUNCTION, or a Command, which is refused for some `ids`."""
    if "{id}" not in pull and "BESTARM_" not in pull and ":" in pull and " " not in pull:
        return function(pull)
    command = Command(pull, timeout)
    command.check_ids(ids)
    command.check_programs()
    return command


def _unusable(name: str, script: bool) -> str:
    """Return why the shell could not run a program, or an interpreter a script; nothing where it could."""
    path = Path(name)
    if not script and "/" not in name:
        known = (
            shutil.which(name)
            or not subprocess.run(
                ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name], capture_output=True, check=False
            ).returncode
        )  # of the shell itself, perhaps
        here = f"; the file of this folder is ./{name}" if path.is_file() else ""
        return "" if known else f"there is no program {name} on the PATH{here}"
    if path.is_dir():
        return f"{name} is a folder"
    if not path.exists():
        return f"there is no file {name}"
    return "" if script or os.access(path, os.X_OK) else f"{name} may not be executed; chmod +x {name} allows it"


def checked(value: Any, shown: str) -> float:
    """Return a value that can be counted as a float, or raise PullError naming by `shown` what gave it.

    A truth counts as 1 or 0; an awaitable is let go of.
    """
    if inspect.isawaitable(value):
        getattr(value, "close", str)()
        raise PullError(f"{shown} gave an awaitable, which only Study.run_async can await; a number is expected")
    try:
        number = real(int(value) if isinstance(value, bool | np.bool_) else value, "it")
    except InputError as error:
        raise PullError(f"{shown} gave {in_short(value)}; a finite number is expected of a pull") from error
    if abs(number) > LARGEST_VALUE:
        raise PullError(f"{shown} gave {number:g}; a number within ±{LARGEST_VALUE:g} is expected of a pull")
    return number


def _said(errors: bytes) -> str:
    """Return the last lines of stderr, shortened, as the end of a message."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()][-3:]
    plain = ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in lines]
    return ": " + " / ".join(shortened(line, 200) for line in plain) if plain else ""
