"""Make a study's observations by calling a function: in threads, or as coroutines.

Every value is told, hence on disk, as soon as it is there. Whoever stops, by an error, Ctrl-C or a power cut, loses no
value that came back; trials that were out are made again by the next run.
"""

import asyncio
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from bestarm.errors import InputError, PullError
from bestarm.study.results import measured
from bestarm.study.study import Study
from bestarm.study.trials import Trial

PATIENCE = 3  # trials in a row that an arm may fail before the run ends
POLL = 0.2  # seconds between looks at what others have told

log = logging.getLogger("bestarm")


def run(
    study: Study,
    pull: Callable[[str], float],
    n_jobs: int = 1,
    retries: int = 2,
    timeout: float | None = None,
    progress: bool = False,
    shared: bool = False,
) -> int:
    """Call `pull(arm id)` in up to `n_jobs` threads until the study is over; return how many values were told.

    A pull that raises or takes longer than `timeout` seconds is tried `retries` times more, then the trial is failed
    with the reason; an arm that fails three trials in a row ends the run. (A thread cannot be stopped: one that took
    too long runs on, and its value is used if it is the first to come.) After Ctrl-C nothing new is begun and what is
    under way is waited for; a second one does not wait.

    Trials that were out before are made first. With `shared` they are left to the other workers of the study, and
    waited for.
    """
    if n_jobs < 1:
        raise InputError(f"at least one job is needed; given {n_jobs}")
    course, crew = Course(study, retries, shared), Crew(pull, timeout)
    failed: Exception | None = None
    with _bar(study, progress) as bar, _on_interrupt(course) as interrupted:
        while crew.out or not (course.stopping or course.over):
            try:
                for trial in course.next(n_jobs - len(crew.out)):
                    crew.send(trial)
                crew.collect(course, bar.update)
            except Exception as error:  # what is under way is still waited for
                failed, course.stopping = failed or error, True
    if failed is not None:
        raise failed
    if interrupted:
        raise KeyboardInterrupt
    return course.made


async def run_async(
    study: Study,
    pull: Callable[[str], Awaitable[float]],
    concurrency: int = 16,
    retries: int = 2,
    timeout: float | None = None,
    shared: bool = False,
) -> int:
    """Await `pull(arm id)`, up to `concurrency` at a time, until the study is over; return how many values were told.

    As `run`; a pull that takes too long is cancelled. Cancelling this cancels the pulls under way; their trials stay
    out, for the next run.
    """
    if concurrency < 1:
        raise InputError(f"a concurrency of at least one is needed; given {concurrency}")
    course = Course(study, retries, shared)

    async def make(trial: Trial) -> None:
        while True:
            try:
                async with asyncio.timeout(timeout) as limit:
                    value = await pull(trial.arm)
            except Exception as error:
                late = isinstance(error, TimeoutError) and limit.expired()
                if not course.broke(trial, PullError(f"did not finish in {timeout} seconds") if late else error):
                    return
            else:
                course.came(trial, value)  # without an await: cancelling cannot come in between
                return

    tasks: set[asyncio.Task[None]] = set()
    try:
        while not course.over:
            tasks |= {asyncio.create_task(make(trial)) for trial in course.next(concurrency - len(tasks))}
            if tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            else:
                await asyncio.sleep(POLL)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        raise
    finally:
        course.stopping = True
        await asyncio.gather(*tasks, return_exceptions=True)
    return course.made


@dataclass
class Course:
    """What a runner does with trials and answers, however they are made."""

    study: Study
    retries: int
    shared: bool = False
    stopping: bool = False
    made: int = 0
    out: dict[str, Trial] = field(default_factory=dict)
    attempts: Counter[str] = field(default_factory=Counter)
    unlucky: Counter[str] = field(default_factory=Counter)  # by arm, failed trials since the last value
    rested: bool = False  # nothing is left of earlier runs

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InputError(f"retries cannot be negative; given {self.retries}")

    @property
    def over(self) -> bool:
        """Whether there is nothing left to make or to wait for."""
        return not self.out and self.study.finished

    def next(self, room: int) -> list[Trial]:
        """Return up to `room` trials to begin now: those left by an earlier run first."""
        if room < 1 or self.stopping:
            return []
        trials = [] if self.shared or self.rested else [t for t in self.study.pending() if t.id not in self.out][:room]
        if not trials:
            self.rested = True
            trials = list(self.study.ask(room) or ())
        if not trials and not self.out:  # somebody else has asked meanwhile
            self.rested = False
        self.out |= {trial.id: trial for trial in trials}
        return trials

    def came(self, trial: Trial, value: Any) -> None:
        """Tell a value; one the model cannot use raises an error that names the arm."""
        self.attempts.pop(trial.id, None)
        self.out.pop(trial.id, None)
        try:
            if not measured(value):
                raise InputError(f"a number is expected of a pull; got {value!r}")
            self.made += self.study.tell(trial, value)
        except InputError as error:
            raise type(error)(f"arm {trial.arm!r} was pulled and gave {value!r}: {error}") from error
        self.unlucky.pop(trial.arm, None)

    def broke(self, trial: Trial, error: BaseException) -> bool:
        """Count a failed attempt and return whether to try again; the last one fails the trial."""
        if self.stopping or trial.id not in self.out:
            self.out.pop(trial.id, None)
            return False
        self.attempts[trial.id] += 1
        reason = str(error) if isinstance(error, PullError) else f"{type(error).__name__}: {error}"
        if self.attempts[trial.id] <= self.retries:
            log.info("trial %s of arm %r failed and is tried again: %s", trial.id, trial.arm, reason)
            return True
        log.warning("trial %s of arm %r failed: %s", trial.id, trial.arm, reason)
        self.attempts.pop(trial.id)
        self.out.pop(trial.id)
        self.unlucky[trial.arm] += 1
        if self.unlucky[trial.arm] < PATIENCE:
            self.study.fail(trial, reason)
            return False
        raise PullError(
            f"arm {trial.arm!r} failed {PATIENCE} trials in a row, the last time so: {reason}; run again when it is "
            "repaired, or withdraw the arm"
        ) from error


class Crew:
    """Threads that pull, and the queue in which they lay what came out."""

    def __init__(self, pull: Callable[[str], float], timeout: float | None) -> None:
        self.pull, self.timeout = pull, timeout
        self.out: dict[str, tuple[Trial, float, int]] = {}  # begun when, at which attempt
        self.results: SimpleQueue[tuple[Trial, int, Any, BaseException | None]] = SimpleQueue()
        self.number = 0

    def send(self, trial: Trial) -> None:
        """Begin a pull."""
        self.number += 1
        self.out[trial.id] = (trial, time.monotonic(), self.number)
        threading.Thread(target=self._work, args=(trial, self.number), daemon=True).start()

    def _work(self, trial: Trial, number: int) -> None:
        try:
            self.results.put((trial, number, self.pull(trial.arm), None))
        except BaseException as error:
            self.results.put((trial, number, None, error))

    def collect(self, course: Course, tick: Callable[[], Any]) -> None:
        """Tell one thing that has come back, if anything does within a moment; give up what took too long."""
        with suppress(Empty):
            self._judge(course, tick, *self.results.get(timeout=POLL))
        for trial, begun, number in list(self.out.values()):
            if self.timeout is not None and time.monotonic() - begun > self.timeout:
                late = PullError(f"did not finish in {self.timeout} seconds")
                self._judge(course, tick, trial, number, None, late)

    def _judge(
        self,
        course: Course,
        tick: Callable[[], Any],
        trial: Trial,
        number: int,
        value: Any,
        error: BaseException | None,
    ) -> None:
        if error is None:
            self.out.pop(trial.id, None)
            course.came(trial, value)
            tick()
        elif self.out.get(trial.id, (None, 0.0, 0))[2] == number:  # else an attempt given up before
            self.out.pop(trial.id)
            if course.broke(trial, error):
                self.send(trial)


@contextmanager
def _on_interrupt(course: Course) -> Iterator[list[int]]:
    """Let a first Ctrl-C stop the handing out only, so that it cannot fall between a value and the log."""
    heard: list[int] = []

    def stop(number: int, frame: Any) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)
        course.stopping = True
        log.warning("stopping: waiting for %d pulls under way; Ctrl-C again does not wait", len(course.out))

    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


def _bar(study: Study, progress: bool) -> Any:
    from tqdm import tqdm

    fold = study.sync()
    total = None if fold.cost else int(fold.budget)
    return tqdm(total=total, initial=int(sum(fold.counts)), unit=" pulls", disable=not progress, leave=False)
