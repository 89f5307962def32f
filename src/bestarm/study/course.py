"""What a runner does with trials and with what comes back, however the pulls are made. It never waits."""

import heapq
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bestarm.errors import InputError, PullError, StorageError
from bestarm.numbers import counted, shown
from bestarm.study import results
from bestarm.study.leases import A_PERSON, Life
from bestarm.study.outbox import Outbox
from bestarm.study.retry import Pace, Retry, Tries
from bestarm.study.study import Study
from bestarm.study.trials import Trial, number_of
from bestarm.templates import shortened

PATIENCE = 3  # trials in a row that an arm may fail before the run ends
POLL = 0.2  # seconds between looks at what others have told
SAID = 1000  # letters of a reason that are kept

log = logging.getLogger("bestarm")


class WrongKind(InputError):
    """A pull is not of the kind that this runner makes."""


class Outcome(NamedTuple):
    """What came of an attempt to make a trial."""

    trial: Trial
    attempt: int
    value: Any = None
    error: BaseException | None = None
    adrift: bool = False  # given up, though it runs on and may still give a value


class Course:
    """A run: trials to begin, values to tell, failures to try again. One thread at a time may use it.

    `step` tells what came back and returns what to begin now; `take` receives what came of it; `done` says that there
    is nothing more to do or to wait for.
    """

    def __init__(
        self,
        study: Study,
        jobs: int,
        life: Life,
        retry: Retry,
        pace: Pace,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.study, self.jobs, self.life, self.retry, self.pace = study, jobs, life, retry, pace
        self.shared, self.clock = shared, clock
        self.outbox = Outbox(study, clock)
        self.outage = self.outbox.outage
        self.stopping = self.hurried = self.over = self.joined = self.looked = False
        self.attempt = 0
        self.error: Exception | None = None
        self.ready: deque[Trial] = deque()  # held, and to begin
        self.flying: dict[str, int] = {}  # attempts under way, by trial
        self.waiting: list[tuple[float, int, Trial]] = []  # to be tried again, and when
        self.held: set[str] = set()  # trials that were ever in `ready`
        self.tries: dict[str, Tries] = {}
        self.unlucky: Counter[str] = Counter()  # by arm, failed trials since the last value
        self.failed: set[str] = set()  # trials, for good
        self.adrift: dict[int, Trial] = {}  # by attempt, what was given up and runs on

    def start(self) -> None:
        """Join the study, unless it is over."""
        self.over = self.study.finished
        if not self.over:
            self.joined = True
            self.life.start()
            self.study.join(self.life.runner, self.jobs)

    def end(self) -> None:
        """Tell once more what is left to tell, and leave the study."""
        try:
            self.outbox.send()
        except Exception as error:
            self._stop(error)
        if not self.joined:
            return
        self.life.stop()
        try:
            if self.outage.since is None:
                self.study.join(self.life.runner, 0)
            self.life.storage.unbeat(self.study.name, self.life.runner)
        except Exception as error:  # others will see that it has gone
            log.debug("runner %s could not leave: %s", self.life.runner, error)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to make, to tell or to wait for."""
        if self.flying or self.hurried:
            return self.hurried
        if self.outage.hopeless(self.clock()):
            return True
        return (self.stopping or self.over) and not self.outbox

    def pause(self) -> float:
        """Return the seconds after which the next step is due, should nothing come back before."""
        now = self.clock()
        if self.outage.since is not None:
            return max(0.0, self.outage.due - now)
        dues = [now + POLL]
        if len(self.flying) < self.jobs and not self.stopping:
            dues += [self.waiting[0][0]] if self.waiting else []
            dues += [now + self.pace.wait(now)] if self.ready else []
        return max(0.0, min(dues) - now)

    def step(self) -> list[Trial]:
        """Tell what came back, and return the trials to begin now."""
        try:
            if self.clock() < self.outage.due or not self.outbox.send() or self.stopping:
                return []
            return self._begin()
        except (StorageError, OSError) as error:
            self.outbox.failed(error)
        except Exception as error:
            self._stop(error)
        return []

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Receive what came of trials that were begun."""
        for outcome in outcomes:
            name = outcome.trial.id
            if outcome.adrift:
                self.adrift[outcome.attempt] = outcome.trial
            else:
                self.adrift.pop(outcome.attempt, None)
            if outcome.error is None:
                self.flying.pop(name, None)
                self._came(outcome.trial, outcome.value)
            elif self.flying.get(name) == outcome.attempt:  # else of an attempt that was given up before
                del self.flying[name]
                self._broke(outcome.trial, outcome.error, outcome.value)

    def report(self, hear: Callable[[Study, Trial, float], Any]) -> None:
        """Let `hear` know of each value that is in the log now; where that fails the run ends as by any error."""
        told = self.outbox.told
        while told:
            try:
                hear(self.study, *told.popleft())
            except Exception as error:
                self._stop(error)

    def verdict(self) -> int:
        """Return how many values were told, or raise what ended the run; values that could not be told come first."""
        if self.outbox.values:
            raise StorageError(self.outbox.lost()) from self.outage.error
        error = self.error or self.outage.error
        if error is not None:
            raise error
        return self.outbox.made

    def summary(self) -> str:
        """Return words that say what was spent, and how to go on."""
        state, me = self.study.state, self.life.runner
        left = sum(state.holders.get(trial, (A_PERSON, 0.0))[0] == me for trial in state.open_trials())
        kept = self.outbox.lost() if self.outbox.values else "every value that came back is kept"
        spent = f"stopped with {state.used:g} of {state.budget:g} spent; {kept}"
        if self.study.storage.place == "memory":  # which ends with the process
            return spent
        first = f"; {left} of the trials that were handed out come{'s' * (left == 1)} first then" if left else ""
        return f"{spent}; run again to go on{first}"

    def _begin(self) -> list[Trial]:
        """Return the trials to begin now: those to be tried again, those left by others, and new ones."""
        self._stay()
        now, room = self.clock(), self.jobs - len(self.flying)
        again: list[Trial] = []
        while self.waiting and self.waiting[0][0] <= now and len(again) < room:
            again.append(heapq.heappop(self.waiting)[2])
        self.ready.extendleft(reversed(again))
        # Those that wait leave their place to others, but no more wait than are made at a time.
        short = min(room, 2 * self.jobs - len(self.flying) - len(self.waiting)) - len(self.ready)
        if short > 0 or self.outage.since is not None:
            self._get(max(short, 1))
            self.outage.worked()
        begun = []
        while self.ready and len(self.flying) < self.jobs and self.pace.wait(self.clock()) <= 0:
            trial = self.ready.popleft()
            if self._is_ours(trial):
                self.pace.begin(self.clock())
                self.attempt += 1
                self.flying[trial.id] = self.attempt
                begun.append(trial)
        return begun

    def _stay(self) -> None:
        """Join again where others took this runner for gone."""
        if self.life.runner not in self.study.state.runners:
            self.study.join(self.life.runner, self.jobs)

    def _get(self, short: int) -> None:
        """Ask for trials; take over what others left at first, and whenever there is nothing else."""
        if not self.looked:
            self._take_over()
            self.looked = True
            if self.ready:
                return
        owed = self._owed()
        if owed:
            state = self.study.state
            short = min(short, int((state.left - owed) / min(map(state.price, state.in_race))))
        if short < 1:
            self._end_with_what_is_adrift(owed)
            return
        batch = self.study.ask(short, runner=self.life.runner, lease=self.life.lease)
        if batch:
            self._hold(batch)
            self._stay()
        elif batch is None:
            self.over = not (self.flying or self.waiting or self.ready)
        else:
            self._take_over()

    def _owed(self) -> float:
        """Return the price of failed trials whose pulls run on: their values take it again when they come."""
        state, trials = self.study.state, {trial.id: trial for trial in self.adrift.values()}
        return sum(state.price(state.places[trials[name].arm]) for name in self.failed.intersection(trials))

    def _end_with_what_is_adrift(self, owed: float) -> None:
        """End the run where nothing else is under way: who was given up may never come back."""
        if not (self.flying or self.waiting or self.ready):
            self._stop(PullError(
                f"pulls that took too long still run, and {owed:g} of the budget is kept for what they give; run again "
                "when they have ended, or with a longer timeout"
            ))  # fmt: skip

    def _take_over(self) -> None:
        """Take over the open trials of those that have gone, and find those held without having been begun."""
        me = self.life.runner
        gone = self.life.gone(self.study.sync(), persons=not self.shared)
        if gone:
            taken = self.study.take_over(me, gone, self.life.lease)
            log.info("%s taken over from %s", counted(len(taken), "trial"), ", ".join(sorted(gone)) or "a person")
            self.life.forget(gone)
        pending = self.study.pending()
        self._hold([trial for trial in pending if trial.id not in self.held and self._holder(trial) == me])

    def _hold(self, trials: Iterable[Trial]) -> None:
        for trial in trials:
            self.held.add(trial.id)
            self.ready.append(trial)

    def _holder(self, trial: Trial) -> str:
        return self.study.state.holders.get(number_of(trial.id) or 0, (A_PERSON, 0.0))[0]

    def _is_ours(self, trial: Trial) -> bool:
        """Return whether a trial is still to be made, and by this runner."""
        state = self.study.state
        if trial.id in self.outbox.values or state.finished_by_hand or not state.is_out(number_of(trial.id) or 0):
            return False
        if self._holder(trial) != self.life.runner:
            self.held.discard(trial.id)  # it may come back
            return False
        return True

    def _came(self, trial: Trial, value: Any) -> None:
        """Keep a value, to be told with the next step; one the model cannot use ends the run."""
        try:
            if not results.measured(value):
                raise InputError(f"trial {trial.id}: a number is expected of a pull")
            one = results.single(self.study.state, trial, value)
        except InputError as error:
            self._stop(type(error)(f"arm {trial.arm!r} was pulled and gave {shown(value)}: {error}"))
            return
        self.outbox.values.setdefault(trial.id, (trial, one))
        self.tries.pop(trial.id, None)
        if trial.id not in self.failed:  # a value that comes too late is no sign that the next one will not
            self.unlucky.pop(trial.arm, None)

    def _broke(self, trial: Trial, error: BaseException, value: Any) -> None:
        """Count a failed attempt; the trial is tried again, or failed for good."""
        if isinstance(error, WrongKind):
            if results.measured(value):
                self._came(trial, value)
            self._stop(error, first=True)
        if self.stopping:  # the next run makes it
            return
        try:
            wait = self.retry.after(error, self.tries.setdefault(trial.id, Tries()))
        except Exception as wrong:  # in the function given as retry_on
            self._stop(wrong)
            return
        reason = shortened(str(error) if isinstance(error, PullError) else f"{type(error).__name__}: {error}", SAID)
        if wait is None:
            self._fail(trial, reason, error)
            return
        log.info("trial %s of arm %r failed and is tried again in %.3g s: %s", trial.id, trial.arm, wait, reason)
        self.attempt += 1
        heapq.heappush(self.waiting, (self.clock() + wait, self.attempt, trial))

    def _fail(self, trial: Trial, reason: str, error: BaseException) -> None:
        """Fail a trial for good; an arm that only fails ends the run."""
        log.warning("trial %s of arm %r failed: %s", trial.id, trial.arm, reason)
        self.tries.pop(trial.id, None)
        self.failed.add(trial.id)
        self.unlucky[trial.arm] += 1
        if self.unlucky[trial.arm] < PATIENCE:
            self.outbox.failures[trial.id] = trial, reason
            return
        wrong = PullError(
            f"arm {trial.arm!r} failed {PATIENCE} trials in a row, the last time so: {reason}; run again when it is "
            "repaired, or withdraw the arm"
        )
        wrong.__cause__ = error
        self._stop(wrong)

    def _stop(self, error: Exception, first: bool = False) -> None:
        """End the run, once what is under way has come back, by an error: the first one."""
        self.error = error if first else self.error or error
        self.stopping = True
