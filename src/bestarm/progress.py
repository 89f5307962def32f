"""How far something has come that takes longer than a second: a bar on a terminal, elsewhere a line now and then."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

SILENT = 1.0  # seconds without a word
REFRESH = 0.2  # seconds between two looks of a bar
OFTEN, SELDOM = 5.0, 60.0  # seconds between lines where nobody sees a bar: with the log at INFO, and otherwise

log = logging.getLogger("bestarm")


class Meter:
    """A bar on stderr where somebody sees it, and else a line a minute; nothing in the first second, or unless `shown`.

    Where the logger `bestarm` lets INFO through, lines come every five seconds. Within a `with` the time goes on also
    while nothing is done.
    """

    def __init__(
        self,
        shown: bool,
        unit: str,
        total: float | None = None,
        done: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shown, self.unit, self.total, self.done, self.first, self.clock = shown, unit, total, done, done, clock
        self.words = ""
        self.bar: Any = None
        self.lock, self.over = threading.Lock(), threading.Event()
        self.started = self.seen = clock()

    def at(self, done: float, words: str | None = None) -> None:
        """Show that so much is done, and what there is to say beside it."""
        self.done, self.words = done, self.words if words is None else words
        if self.shown:
            with self.lock:
                self._show(self.clock())

    def _show(self, now: float) -> None:
        if self.over.is_set() or now - self.started < SILENT:
            return
        if watched():
            if self.bar is None or now - self.seen >= REFRESH:
                self.seen = now
                self._draw()
        elif now - self.seen >= (OFTEN if log.isEnabledFor(logging.INFO) else SELDOM):
            self.seen = now
            print(self.line(), file=sys.stderr, flush=True)

    def add(self, more: float) -> None:
        """Show that so much more is done."""
        self.at(self.done + more)

    def line(self) -> str:
        """Return how far it has come, how fast it goes and how long it takes yet, in a line."""
        seconds = self.clock() - self.started
        rate = (self.done - self.first) / seconds if seconds > 0 else 0.0
        of = "" if self.total is None else f" of {self.total:,.10g}"
        left = [f"{duration((self.total - self.done) / rate)} left"] if self.total is not None and rate > 0 else []
        return ", ".join([f"{self.done:,.10g}{of} {self.unit}", speed(rate), *left]) + (
            self.words and f"; {self.words}"
        )

    def _draw(self) -> None:
        from tqdm import tqdm

        if self.bar is None:
            first, unit = _whole(self.first), f" {self.unit}"
            self.bar = tqdm(initial=first, unit=unit, file=sys.stderr, leave=False, delay=1e-9)  # drawn below
            self.bar.start_t -= self.clock() - self.started
        self.bar.total, self.bar.n = self.total and _whole(self.total), _whole(self.done)
        self.bar.set_postfix_str(self.words, refresh=True)

    def _live(self) -> None:
        """Show the time that goes by."""
        while not self.over.wait(SILENT or REFRESH):
            self.at(self.done)

    def __enter__(self) -> "Meter":
        if self.shown:
            threading.Thread(target=self._live, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        self.over.set()
        with self.lock:
            if self.bar is not None:
                self.bar.close()


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def watched() -> bool:
    """Return whether somebody sees what is drawn over on stderr: on a terminal, or in a notebook."""
    return bool(getattr(sys.stderr, "isatty", bool)()) or "ipykernel" in sys.modules


def write(line: str) -> None:
    """Write a line to stderr, above the bars that are drawn there."""
    tqdm: Any = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if tqdm is None:
        print(line, file=sys.stderr, flush=True)
    else:
        tqdm.write(line, file=sys.stderr)


def speed(rate: float) -> str:
    """Return how much is done in a second, or in a time in which there is something.

    >>> speed(1234.5), speed(0.25), speed(0.002), speed(0)
    ('1,234 a second', '15 a minute', '7.2 an hour', 'none yet')
    """
    if rate <= 0:
        return "none yet"
    spans: tuple[tuple[float, str], ...] = ((rate, "a second"), (60 * rate, "a minute"), (3600 * rate, "an hour"))
    often, span = next((pair for pair in spans if pair[0] >= 1), spans[-1])
    return f"{often:,.0f} {span}" if often >= 100 else f"{often:.2g} {span}"


def duration(seconds: float) -> str:
    """Return a span of time as people say it.

    >>> duration(7.4), duration(200), duration(9000), duration(400000)
    ('7 s', '3 min 20 s', '2 h 30 min', '4 d 15 h')
    """
    for unit, name, part, of in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name} {int(seconds % unit // part)} {of}"
    return f"{seconds:.0f} s"
