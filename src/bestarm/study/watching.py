"""How a run comes along: who is ahead and how sure that is, what is spent, how fast it goes and how long it takes."""

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bestarm.answer.wording import percent
from bestarm.progress import Meter
from bestarm.study.evidence import evidence_of
from bestarm.study.state import StudyState
from bestarm.study.study import Study

SHARE = 0.05  # of the time, at most, that goes into finding out who is ahead
DRAWS = 500
GUESS = 0.1, 5e-4  # seconds that the first look takes: as such, and for each arm

log = logging.getLogger("bestarm")


class Watch:
    """Show how a study comes along, or leave that to a function of the study.

    `look` finds out who is ahead, and is `due` as often as a share of the time allows; `show` is cheap.
    """

    def __init__(
        self, study: Study, progress: bool | Callable[[Study], Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.study, self.progress, self.clock = study, progress, clock
        state = study.sync()
        shown = bool(progress) and not callable(progress)
        self.meter = Meter(shown, "spent" if state.cost else "pulls", state.budget, _made(state), clock)
        arms = len(state.ids) if state.rows is None else len(state.measured)
        self.next = clock() + (GUESS[0] + GUESS[1] * arms) / SHARE
        self.told, self.words = 0.0, ""

    def due(self) -> bool:
        """Return whether there is something new to find out, and time for it."""
        return self.meter.shown and self.clock() >= self.next and self.study.state.total != self.told

    def look(self) -> None:
        """Find out who is ahead, and with what chance; that this fails is no reason for a run to end."""
        begun = self.clock()
        try:
            with self.study.log.lock:
                state = self.study.state
                evidence, self.told = evidence_of(state), state.total
            belief = evidence.believed(DRAWS, np.random.default_rng([state.seed, int(self.told)]))
            leader = int(np.argmax(belief.mean))
            arm = evidence.ids[int(np.flatnonzero(evidence.present)[leader])]
            self.words = f"ahead: {arm}, {percent(float(belief.chances[leader]))}"
        except Exception as error:
            log.debug("who is ahead cannot be said: %s", error)
        self.next = self.clock() + (self.clock() - begun) / SHARE

    def show(self) -> None:
        """Show how far it is."""
        if callable(self.progress):
            self.progress(self.study)
        elif self.meter.shown:
            self.meter.at(_made(self.study.state), self.words)

    def step(self) -> None:
        """Look, if that is due, and show."""
        if self.due():
            self.look()
        self.show()

    def __enter__(self) -> "Watch":
        self.meter.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.meter.close()


def _made(state: StudyState) -> float:
    """Return what is spent of the budget on trials that are no longer out; of money, on those too."""
    now = state.round
    return state.used if state.cost is not None or now is None else state.used - now.open.count(1, 0, now.handed)
