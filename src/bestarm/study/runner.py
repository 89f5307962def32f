"""Make a study's observations by calling a function: in threads, or as coroutines.

Every value is told, hence on disk, as soon as it is there. Whoever stops, by an error, Ctrl-C or a power cut, loses no
value that came back; trials that were out are made again by the next run, or by others who run the study.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from bestarm import pulling
from bestarm.errors import InputError
from bestarm.numbers import real, shown, whole
from bestarm.study.course import Course
from bestarm.study.crews import Pull, Tasks, Threads
from bestarm.study.leases import LEASE, Life
from bestarm.study.retry import Pace, Retry, RetryOn
from bestarm.study.study import Study

T = TypeVar("T")

log = logging.getLogger("bestarm")


def run(
    study: Study,
    pull: Callable[..., float],
    n_jobs: int = 1,
    retries: int = 2,
    timeout: float | None = None,
    progress: bool | Callable[[Study], None] = False,
    shared: bool = False,
    *,
    retry_on: RetryOn = Exception,
    backoff: float = 0.5,
    per_second: float | None = None,
    lease: float = LEASE,
) -> int:
    """Call `pull(arm id)` in `n_jobs` threads until the study is over; return how many values were told.

    A study without a batch plans as many pulls together as its runners make at a time. A pull that raises what
    `retry_on` says, exception types or a function of the exception, or takes longer than `timeout` seconds, is tried
    `retries` times more, after `backoff` seconds, then twice as many, and so on; meanwhile others are made. Then the
    trial is failed with the reason; an arm that fails three trials in a row ends the run. A wait that the exception
    asks for, as `retry_after` or among the headers of its response, is kept to. (A thread cannot be stopped: one that
    took too long runs on, and its value is used if it is the first to come. One that comes when its trial has failed is
    kept and paid for: no more trials are begun than the budget has beside those.) At most `per_second` pulls begin a
    second.

    A value that cannot be told is told again until the storage's timeout, and else named in the error. After Ctrl-C
    nothing new is begun and what is under way is waited for; a second one, or SIGTERM, does not wait.

    Trials that were out before are made first, but for those of runners that are at work; with `shared` also those that
    a person asked for are left alone. A runner that gives no sign of life for `lease` seconds has lost its trials to
    the others; if a value of one comes all the same, it counts once.
    """
    jobs = whole(n_jobs, "n_jobs", least=1)
    limit = None if timeout is None else real(timeout, "timeout", above=0)
    course = _course(study, jobs, lease, Retry.of(retries, retry_on, backoff), Pace.of(per_second), shared)
    crew = Threads(_caller(pull, study), limit)
    with _bar(study, progress) as show, _on_signals(course) as heard:
        try:
            course.start()
            while not course.done:
                for trial in course.step():
                    crew.send(trial, course.flying[trial.id])
                course.take(crew.collect(course.pause()))
                show(course.outbox.made)
        finally:
            if course.flying and isinstance(pull, pulling.Command):
                pull.stop()
            course.take(crew.collect(0.0))
            course.end()
    if heard and course.error is None:
        log.warning(course.summary())
        raise KeyboardInterrupt if heard[-1] == signal.SIGINT else SystemExit(128 + heard[-1])
    return course.verdict()


async def run_async(
    study: Study,
    pull: Callable[..., Awaitable[float]],
    concurrency: int = 16,
    retries: int = 2,
    timeout: float | None = None,
    progress: bool | Callable[[Study], None] = False,
    shared: bool = False,
    *,
    retry_on: RetryOn = Exception,
    backoff: float = 0.5,
    per_second: float | None = None,
    lease: float = LEASE,
) -> int:
    """Await `pull(arm id)`, `concurrency` at a time, until the study is over; return how many values were told.

    As `run`; a pull that takes too long is cancelled. Cancelling this cancels the pulls under way; their trials stay
    out, for the next run. The log is written in a thread, so that the event loop never waits for a disk.
    """
    jobs = whole(concurrency, "concurrency", least=1)
    limit = None if timeout is None else real(timeout, "timeout", above=0)
    course = _course(study, jobs, lease, Retry.of(retries, retry_on, backoff), Pace.of(per_second), shared)
    crew, cancelled = Tasks(_caller(pull, study), limit), False
    with ThreadPoolExecutor(1, "bestarm-study") as pool, _bar(study, progress) as show:
        try:
            await _aside(pool, course.start)
            while not course.done:
                for trial in await _aside(pool, course.step):
                    crew.send(trial, course.flying[trial.id])
                course.take(await crew.collect(course.pause()))
                show(course.outbox.made)
        except asyncio.CancelledError:
            course.stopping = cancelled = True
            raise
        finally:
            try:
                await crew.stop()
            finally:
                course.take(crew.came())
                await _aside(pool, course.end)
                if cancelled:
                    log.warning(course.summary())
    return course.verdict()


def _course(study: Study, jobs: int, lease: float, retry: Retry, pace: Pace, shared: bool) -> Course:
    life = Life(study.storage, study.name, real(lease, "lease", above=0))
    return Course(study, jobs, life, retry, pace, bool(shared))


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
            log.warning("stopping: waiting for %d pulls under way; Ctrl-C again does not wait", len(course.flying))

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, pulling.leave):
                before[number] = signal.getsignal(number)  # what others handle is theirs
    handled = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for number in handled:
        signal.signal(number, stop)
    try:
        yield heard
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)


@contextmanager
def _bar(study: Study, progress: bool | Callable[[Study], None]) -> Iterator[Callable[[int], None]]:
    """Give a function that shows how many values were told; a function of the study shows what it likes."""
    if callable(progress):
        yield lambda made: progress(study)
        return
    if not progress:
        yield lambda made: None
        return
    from tqdm import tqdm

    state = study.sync()
    before, total = int(state.total), None if state.cost else int(state.budget)
    with tqdm(total=total, initial=before, unit=" pulls", leave=False) as bar:
        yield lambda made: bar.update(before + made - bar.n) and None
