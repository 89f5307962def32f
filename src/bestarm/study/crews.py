"""Who makes pulls: threads, or tasks of an event loop. They begin attempts and give what came of them."""

import asyncio
import inspect
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from bestarm.numbers import counted, shown
from bestarm.study.course import Outcome, WrongKind
from bestarm.study.retry import PullTimeout
from bestarm.study.trials import Trial

Pull = Callable[[Trial], Any]
PATIENCE, SLICE = 5.0, 0.1  # seconds until threads that do not end are left alone; between two looks


@dataclass
class Deadlines:
    """When attempts under way are given up."""

    timeout: float | None
    begun: dict[int, tuple[Trial, float]] = field(default_factory=dict)  # by attempt

    def wait(self) -> float:
        """Return the seconds until the next attempt is late."""
        if self.timeout is None or not self.begun:
            return math.inf
        oldest = next(iter(self.begun.values()))[1]  # they are in the order of beginning
        return max(0.0, oldest + self.timeout - time.monotonic())

    def late(self) -> list[Outcome]:
        """Return attempts that take too long, each once."""
        found = []
        while self.wait() <= 0:
            attempt = next(iter(self.begun))
            trial, _ = self.begun.pop(attempt)
            late = PullTimeout(f"did not finish in {counted(self.timeout or 0.0, 'second')}")
            found.append(Outcome(trial, attempt, error=late))
        return found


class Threads:
    """Make pulls in threads, which cannot be stopped: one that is given up runs on, and may still give a value."""

    def __init__(self, pull: Pull, timeout: float | None) -> None:
        self.pull, self.deadlines = pull, Deadlines(timeout)
        self.results: SimpleQueue[Outcome] = SimpleQueue()
        self.refused: WrongKind | None = None  # after which nothing is begun
        self.threads: set[threading.Thread] = set()  # that pull

    def send(self, trial: Trial, attempt: int) -> None:
        """Begin an attempt."""
        self.deadlines.begun[attempt] = trial, time.monotonic()
        thread = threading.Thread(target=self._work, args=(trial, attempt), daemon=True)
        self.threads = {one for one in self.threads if one.is_alive()} | {thread}
        thread.start()

    def stop(self, end: Callable[[], Any]) -> None:
        """Let `end` end what is under way, again for what a thread was only about to begin, until nothing is."""
        late = time.monotonic() + PATIENCE
        while any(thread.is_alive() for thread in self.threads) and time.monotonic() < late:
            end()
            for thread in self.threads:
                thread.join(SLICE / len(self.threads))

    def _work(self, trial: Trial, attempt: int) -> None:
        try:
            value = None if self.refused else self.pull(trial)
            if inspect.isawaitable(value):
                _drop(value)
                what = f"pulling arm {trial.arm!r} gave an awaitable"
                self.refused = WrongKind(f"{what}: run_async makes such pulls, run does not")
            self.results.put(Outcome(trial, attempt, None if self.refused else value, self.refused))
        except BaseException as error:
            self.results.put(Outcome(trial, attempt, error=error))

    def collect(self, pause: float) -> list[Outcome]:
        """Return what has come back, waiting for the first at most `pause` seconds; what is late is given up."""
        found = []
        try:
            found.append(self.results.get(timeout=min(pause, self.deadlines.wait())))
            while True:
                found.append(self.results.get_nowait())
        except Empty:
            pass
        for outcome in found:
            self.deadlines.begun.pop(outcome.attempt, None)
        return found + [outcome._replace(adrift=True) for outcome in self.deadlines.late()]


class Tasks:
    """Make pulls as tasks; one that is given up is cancelled."""

    def __init__(self, pull: Pull, timeout: float | None) -> None:
        self.pull, self.deadlines = pull, Deadlines(timeout)
        self.tasks: dict[int, asyncio.Future[Any]] = {}  # by attempt
        self.results: deque[Outcome] = deque()
        self.news = asyncio.Event()
        self.refused: WrongKind | None = None  # after which nothing is begun

    def send(self, trial: Trial, attempt: int) -> None:
        """Begin an attempt."""
        if self.refused:
            self._came(Outcome(trial, attempt, error=self.refused))
            return
        try:
            given = self.pull(trial)
        except Exception as error:
            self._came(Outcome(trial, attempt, error=error))
            return
        if not inspect.isawaitable(given):
            what = f"pulling arm {trial.arm!r} gave {shown(given)}, which is no awaitable"
            self.refused = WrongKind(f"{what}: run makes such pulls, run_async does not")
            self._came(Outcome(trial, attempt, given, self.refused))
            return
        task = asyncio.ensure_future(given)
        self.tasks[attempt] = task
        self.deadlines.begun[attempt] = trial, time.monotonic()
        task.add_done_callback(lambda done: self._ended(trial, attempt, done))

    def _ended(self, trial: Trial, attempt: int, task: "asyncio.Future[Any]") -> None:
        self.deadlines.begun.pop(attempt, None)
        self.tasks.pop(attempt, None)
        error = asyncio.CancelledError("it was cancelled") if task.cancelled() else task.exception()
        self._came(
            Outcome(trial, attempt, error=error) if error is not None else Outcome(trial, attempt, task.result())
        )

    def _came(self, outcome: Outcome) -> None:
        self.results.append(outcome)
        self.news.set()

    async def collect(self, pause: float) -> list[Outcome]:
        """Return what has come back, waiting for the first at most `pause` seconds; what is late is given up."""
        wait = min(pause, self.deadlines.wait())
        if not self.results and wait > 0:
            try:
                async with asyncio.timeout(wait):
                    await self.news.wait()
            except TimeoutError:
                pass
        found = self.came() + self.deadlines.late()
        for outcome in found:
            if outcome.attempt in self.tasks:
                self.tasks[outcome.attempt].cancel()
        return found

    def came(self) -> list[Outcome]:
        """Return what has come back."""
        found = list(self.results)
        self.results.clear()
        self.news.clear()
        return found

    async def stop(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        for task in self.tasks.values():
            task.cancel()
        if self.tasks:
            await asyncio.wait(list(self.tasks.values()))
            await asyncio.sleep(0)  # the callbacks come after


def _drop(awaitable: Awaitable[Any]) -> None:
    """Let go of an awaitable that nobody will wait for."""
    for name in ("close", "cancel"):  # of a coroutine, of a future
        if callable(getattr(awaitable, name, None)):
            getattr(awaitable, name)()
            return
