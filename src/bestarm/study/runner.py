"""Make a study's observations by calling a function: in threads, or as coroutines.

Every value is told, hence on disk, as soon as it is there. Whoever stops, by an error, Ctrl-C or a power cut, loses no
value that came back; trials that were out are made again by the next run, or by others who run the study.
"""

import asyncio
import inspect
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from bestarm import pulling
from bestarm.errors import InputError, UnknownNameError
from bestarm.numbers import counted, real, shown, whole
from bestarm.study.course import Course
from bestarm.study.crews import Pull, Tasks, Threads
from bestarm.study.leases import LEASE, Life
from bestarm.study.retry import Pace, Retry, RetryOn
from bestarm.study.study import Study
from bestarm.study.trials import Trial
from bestarm.study.watching import Watch

T = TypeVar("T")
Hear = Callable[[Study, Trial, float], Any]

log = logging.getLogger("bestarm")


def unheard(study: Study, trial: Trial, value: float) -> None:
    """Let nobody hear of a result."""


@dataclass(frozen=True, kw_only=True)
class RunTerms:
    """How pulls are made.

    A pull that raises what `retry_on` says, exception types or a function of the exception, or takes longer than
    `timeout` seconds, is tried `retries` times more, after `backoff` seconds, then twice as many, and so on; meanwhile
    others are made. Then the trial is failed with the reason; an arm that fails three trials in a row ends the run. A
    wait that the exception asks for, as `retry_after` or among the headers of its response, is kept to. At most
    `per_second` pulls begin a second.

    Trials that were out before are made first, but for those of runners that are at work; with `shared` also those that
    a person asked for are left alone. A runner that gives no sign of life for `lease` seconds has lost its trials to
    the others; if a value of one comes all the same, it counts once.

    `progress` shows who is ahead, what is spent, how fast and how long yet: a bar on a terminal, elsewhere a line a
    minute; or it is a function that is called with the study. `on_result(study, trial, value)` is called for every
    value as soon as it is in the log; where it raises, the run ends by that. `account` is told what was spent where a
    signal or a cancellation ends the run.
    """

    retries: int = 2
    timeout: float | None = None
    progress: bool | Callable[[Study], None] = False
    shared: bool = False
    retry_on: RetryOn = Exception
    backoff: float = 0.5
    per_second: float | None = None
    lease: float = LEASE
    on_result: Hear = unheard
    account: Callable[[str], Any] = log.warning

    @classmethod
    def of(cls, how: Mapping[str, Any]) -> "RunTerms":
        """Return the terms that are given by name."""
        for name in how:
            if name not in cls.__dataclass_fields__:
                raise UnknownNameError("setting of a run", name, ("n_jobs", *cls.__dataclass_fields__))
        if inspect.iscoroutinefunction(how.get("on_result")):
            raise InputError("on_result must be a plain function of study, trial and value; given a coroutine function")
        return cls(**how)

    @property
    def limit(self) -> float | None:
        """The longest time for a pull."""
        return None if self.timeout is None else real(self.timeout, "timeout", above=0)

    def course(self, study: Study, jobs: int) -> Course:
        """Return a run on these terms, so many pulls at a time."""
        life = Life(study.storage, study.name, real(self.lease, "lease", above=0))
        retry = Retry.of(self.retries, self.retry_on, self.backoff)
        return Course(study, jobs, life, retry, Pace.of(self.per_second), bool(self.shared))


def run(study: Study, pull: Callable[..., float], n_jobs: int = 1, **how: Any) -> int:
    """Call `pull(arm id)` in `n_jobs` threads until the study is over; return how many values were told.

    `how` is as in `RunTerms`. A study without a batch plans as many pulls together as its runners make at a time. (A
    thread cannot be stopped: one that took too long runs on, and its value is used if it is the first to come. One that
    comes when its trial has failed is kept and paid for: no more trials are begun than the budget has beside those.)

    A value that cannot be told is told again until the storage's timeout, and else named in the error. After Ctrl-C
    nothing new is begun and what is under way is waited for; a second one, or SIGTERM, does not wait.
    """
    terms = RunTerms.of(how)
    course = terms.course(study, whole(n_jobs, "n_jobs", least=1))
    crew = Threads(_caller(pull, study), terms.limit)
    with Watch(study, terms.progress) as watch, _on_signals(course) as heard:
        try:
            course.start()
            while not course.done:
                for trial in course.step():
                    crew.send(trial, course.flying[trial.id])
                course.report(terms.on_result)
                course.take(crew.collect(course.pause()))
                watch.step()
        finally:
            if course.flying and isinstance(pull, pulling.Command):
                crew.stop(pull.stop)
            course.take(crew.collect(0.0))
            course.end()
            course.report(terms.on_result)
    if heard and course.error is None:
        terms.account(course.summary())
        raise KeyboardInterrupt if heard[-1] == signal.SIGINT else SystemExit(128 + heard[-1])
    return course.verdict()


async def run_async(study: Study, pull: Callable[..., Awaitable[float]], concurrency: int = 16, **how: Any) -> int:
    """Await `pull(arm id)`, `concurrency` at a time, until the study is over; return how many values were told.

    As `run`; a pull that takes too long is cancelled. Cancelling this cancels the pulls under way; their trials stay
    out, for the next run. The log is written in a thread, so that the event loop never waits for a disk.
    """
    terms = RunTerms.of(how)
    course = terms.course(study, whole(concurrency, "concurrency", least=1))
    crew, cancelled = Tasks(_caller(pull, study), terms.limit), False
    with ThreadPoolExecutor(1, "bestarm-study") as pool, Watch(study, terms.progress) as watch:
        try:
            await _aside(pool, course.start)
            while not course.done:
                for trial in await _aside(pool, course.step):
                    crew.send(trial, course.flying[trial.id])
                course.report(terms.on_result)
                course.take(await crew.collect(course.pause()))
                if watch.due():
                    await _aside(pool, watch.look)
                watch.show()
        except asyncio.CancelledError:
            course.stopping = cancelled = True
            raise
        finally:
            try:
                await crew.stop()
            finally:
                course.take(crew.came())
                await _aside(pool, course.end)
                course.report(terms.on_result)
                if cancelled:
                    terms.account(course.summary())
    return course.verdict()


def _caller(pull: Callable[..., Any], study: Study) -> Pull:
    """Return a pull as a function of a trial: of its arm's id, and of more where it can make use of that."""
    if not callable(pull):
        raise InputError(f"pull must be a function of an arm's id; given {shown(pull)}")
    if getattr(pull, "takes_trial", False):
        return lambda trial: pull(trial.arm, trial=trial.id, study=study.name)
    return lambda trial: pull(trial.arm)


async def _aside(pool: Executor, work: Callable[[], T]) -> T:
    """Do some work in a thread; whoever cancels this waits for its end."""
    future = asyncio.get_running_loop().run_in_executor(pool, work)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return future.result()


@contextmanager
def _on_signals(course: Course) -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM stop the handing out only, so that they cannot fall between a value and the log.

    After the third of them nothing is waited for, not even the storage.
    """
    heard: list[int] = []

    def stop(number: int, frame: Any) -> None:
        heard.append(number)
        course.stopping = True
        course.hurried = len(heard) > 1 or number != signal.SIGINT
        if len(heard) > 2:
            raise KeyboardInterrupt
        if course.flying and not course.hurried:
            pulls = counted(len(course.flying), "pull")
            log.warning("stopping: waiting for %s under way; Ctrl-C again does not wait", pulls)

    def ours(own: Any) -> bool:  # what others handle is theirs
        return own in (signal.SIG_DFL, pulling.leave)

    interrupts = pulling.signals_to(stop, ["SIGINT"], lambda own: own not in (None, signal.SIG_IGN))
    with interrupts, pulling.signals_to(stop, pulling.ENDING, ours):
        yield heard
