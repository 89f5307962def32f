"""When a failed pull is tried again, how soon, and how many pulls may begin in a second."""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from bestarm.errors import InputError, PullError
from bestarm.numbers import real, shown, whole

RetryOn: TypeAlias = type[BaseException] | Iterable[type[BaseException]] | Callable[[BaseException], Any]

LONGEST = 60.0  # seconds of back-off at most
GRANTED = 20  # waits that a service may ask for before they count as failures of the pull
LAG = 0.05  # seconds by which a runner may be late and still make up for it


class PullTimeout(PullError, TimeoutError):
    """A pull took too long."""


@dataclass
class Tries:
    """How often the pull of a trial failed, and how often it was asked to wait."""

    failed: int = 0
    waited: int = 0


@dataclass(frozen=True)
class Retry:
    """Try a pull again after errors that `wanted` says are worth it, later each time.

    After the k-th failure the wait is backoff · 2^(k−1) seconds, at most a minute, times a random number from ½ to 1.
    """

    retries: int = 2
    wanted: Callable[[BaseException], Any] = lambda error: isinstance(error, Exception)
    backoff: float = 0.5
    rng: random.Random = field(default_factory=random.Random, repr=False)

    @classmethod
    def of(cls, retries: Any, retry_on: RetryOn, backoff: Any) -> "Retry":
        """Return what the settings of a run say, checked."""
        return cls(whole(retries, "retries", least=0), _wanted(retry_on), real(backoff, "backoff", least=0))

    def after(self, error: BaseException, tries: Tries) -> float | None:
        """Count a failure, and return the seconds to wait before the next attempt; None: there is none.

        A wait that the error asks for (Retry-After) is kept to, and is none of the `retries`.
        """
        if not self.wanted(error):
            return None
        asked = asked_to_wait(error)
        if asked is not None and tries.waited < GRANTED:
            tries.waited += 1
            return max(asked + self.rng.uniform(0, min(1.0, asked / 10)), self._backoff(tries.waited))
        tries.failed += 1
        if tries.failed > self.retries:
            return None
        return max(asked or 0.0, self._backoff(tries.failed))

    def _backoff(self, attempt: int) -> float:
        return min(LONGEST, self.backoff * 2.0 ** min(attempt - 1, 60)) * self.rng.uniform(0.5, 1.0)


def _wanted(retry_on: RetryOn) -> Callable[[BaseException], Any]:
    """Return a predicate for exception types, one or several, or the predicate given."""
    if not isinstance(retry_on, type) and callable(retry_on):
        predicate: Callable[[BaseException], Any] = retry_on
        return predicate
    kinds = tuple(retry_on) if isinstance(retry_on, Iterable) and not isinstance(retry_on, str) else (retry_on,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InputError(f"retry_on is a type of exception, several, or a function of one; given {shown(retry_on)}")
    return lambda error: any(isinstance(one, kinds) for one in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give an error, and where we only said more about it what it was raised from."""
    yield error
    while isinstance(error, PullError) and error.__cause__ is not None:
        error = error.__cause__
        yield error


def asked_to_wait(error: BaseException, now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds that an error asks to wait: its `retry_after`, or Retry-After among its response's headers.

    >>> error = OSError("429 Too Many Requests")
    >>> error.retry_after = "7"
    >>> asked_to_wait(error)
    7.0
    """
    for one in _causes(error):
        for said in _said(one):
            seconds = _seconds(said, now)
            if seconds is not None:
                return seconds
    return None


def _said(error: BaseException) -> Iterator[Any]:
    """Give what an error may carry; what it is depends on who raised it, so nothing here may go wrong."""
    with suppress(Exception):
        yield getattr(error, "retry_after", None)
    for at in (lambda: getattr(error, "response", None), lambda: error):
        with suppress(Exception):
            headers = getattr(at(), "headers", None) or {}
            yield next((value for name, value in dict(headers).items() if str(name).lower() == "retry-after"), None)


def _seconds(said: Any, now: Callable[[], float]) -> float | None:
    """Return a number of seconds, a span, a time or an HTTP date as seconds from now; None for anything else."""
    if isinstance(said, bytes):
        said = said.decode("latin-1")
    if isinstance(said, str):
        try:
            said = float(said)
        except ValueError:
            with suppress(ValueError, TypeError, OverflowError):
                said = parsedate_to_datetime(said)
    if isinstance(said, timedelta):
        said = said.total_seconds()
    if isinstance(said, datetime):
        with suppress(ValueError, OverflowError, OSError):
            said = max(0.0, said.timestamp() - now())
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < math.inf:
        return None
    return float(said)


@dataclass
class Pace:
    """At most so many beginnings a second, evenly spread; None: any number."""

    per_second: float | None = None
    ready: float = -math.inf  # when the next may begin

    @classmethod
    def of(cls, per_second: Any) -> "Pace":
        """Return what the setting of a run says, checked."""
        return cls(None if per_second is None else real(per_second, "per_second", above=0))

    def wait(self, now: float) -> float:
        """Return the seconds until one may begin."""
        return max(0.0, self.ready - now)

    def begin(self, now: float) -> None:
        """Count one that begins."""
        if self.per_second is not None:
            late = now if self.ready == -math.inf else max(self.ready, now - LAG)
            self.ready = late + 1 / self.per_second
