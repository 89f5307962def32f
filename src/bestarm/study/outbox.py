"""What came back and is not in the log yet: told again and again while the storage fails, and never forgotten."""

import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bestarm.errors import StorageError
from bestarm.study import results
from bestarm.study.storage import Record
from bestarm.study.study import Study
from bestarm.study.trials import Trial

FIRST, SLOWEST = 0.05, 2.0  # seconds until a storage that failed is tried again, at first and at most

log = logging.getLogger("bestarm")


@dataclass
class Outage:
    """A storage that fails, from its first error on until it works again; it is tried for `limit` seconds, then later.

    After the k-th error the wait is 0.05 · 2^(k−1) seconds, at most two, times a random number from ½ to 1.
    """

    limit: float
    rng: random.Random = field(default_factory=random.Random, repr=False)
    since: float | None = None
    due: float = -math.inf  # when to try again
    error: BaseException | None = None
    tries: int = 0

    def failed(self, error: BaseException, now: float) -> None:
        """Note an error."""
        if self.since is None:
            log.warning("the storage failed, and is tried again for %g s: %s", self.limit, error)
            self.since = now
        self.due = now + min(SLOWEST, FIRST * 2.0**self.tries) * self.rng.uniform(0.5, 1.0)
        self.error, self.tries = error, min(self.tries + 1, 30)

    def give_up(self, error: BaseException) -> None:
        """Note an error that time cannot mend."""
        self.since, self.error = -math.inf, error

    def worked(self) -> None:
        """Note that the storage works."""
        self.since, self.due, self.error, self.tries = None, -math.inf, None, 0

    def hopeless(self, now: float) -> bool:
        """Return whether it has failed for as long as it is waited for."""
        return self.since is not None and now - self.since >= self.limit


@dataclass
class Outbox:
    """Values and failures of trials on their way into the log, and how many values were new there."""

    study: Study
    clock: Callable[[], float] = time.monotonic
    made: int = 0
    values: dict[str, tuple[Trial, Record]] = field(default_factory=dict)  # by trial
    failures: dict[str, tuple[Trial, str]] = field(default_factory=dict)
    told: deque[tuple[Trial, float]] = field(default_factory=deque)  # values now in the log, for whoever wants to hear
    unsure: set[str] = field(default_factory=set)  # values that may be in the log although the storage failed

    def __post_init__(self) -> None:
        self.outage = Outage(self.study.storage.timeout)

    def __len__(self) -> int:
        return len(self.values) + len(self.failures)

    def send(self) -> bool:
        """Write everything in one go, and return whether nothing is left; an error that time cannot mend is raised."""
        if not self:
            return True
        try:
            self._count_the_unsure()
            values, failures = [one for _, one in self.values.values()], list(self.failures.values())
            self.made += self.study.write(
                lambda state: [*results.telling(state, values), *results.failing(state, failures)]
            )
        except (StorageError, OSError) as error:
            self.failed(error)
            return False
        except Exception as error:
            self.outage.give_up(error)
            raise
        self.outage.worked()
        self.told.extend((trial, one["value"]) for trial, one in self.values.values())
        self.values.clear()
        self.failures.clear()
        return True

    def failed(self, error: BaseException) -> None:
        """Note that the storage failed."""
        self.outage.failed(error, self.clock())
        self.unsure |= set(self.values)

    def _count_the_unsure(self) -> None:
        """Take out, and count, the values that are in the log although the storage said that it failed."""
        known = self.study.sync().results if self.unsure else {}
        for name in self.unsure & set(self.values):
            trial, one = self.values[name]
            if one["trial"] in known and known[one["trial"]].sum == one["value"]:
                self.made += 1
                self.told.append((trial, one["value"]))
                del self.values[name]
        self.unsure.clear()

    def lost(self) -> str:
        """Return words that name every value that could not be told."""
        many = f"{len(self.values)} values" if len(self.values) > 1 else "a value"
        told = self.values.values()
        each = "; ".join(f"trial {trial.id} of arm {trial.arm!r} gave {one['value']!r}" for trial, one in told)
        return f"{many} came back and could not be told ({self.outage.error}); tell by hand: {each}"
