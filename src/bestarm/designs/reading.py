"""Reading a table for a design: passes that are counted and timed, and how many rows are held between them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bestarm.errors import InputError
from bestarm.tables.source import Source

Index: TypeAlias = NDArray[np.int64]
Progress: TypeAlias = Callable[[int, int, int, float], None]

SAMPLE = 4096  # rows that say what leverages are like: enough for a quantile of one in thirty to within 10 %
POOL_SHARE = 32
LEAST_POOL = 2048
POOL_BYTES = 8 << 20  # measured: a larger pool costs more in cache than the pass it may save


@dataclass(frozen=True)
class Pass:
    """One reading of the table: what for, max g / r (NaN where it is not known), rows in the cache, seconds."""

    purpose: str
    certificate: float
    active: int
    seconds: float


class Reader:
    """A source whose passes are counted and timed."""

    def __init__(self, source: Source, progress: Progress | None) -> None:
        self.source, self.progress = source, progress
        self.trace: list[Pass] = []
        self.gap = float("inf")

    def sweep(self, kernel: Any, combine: Any, purpose: str, active: int = 0) -> Any:
        """Read all rows once, as `Source.sweep` does, and note the pass."""
        number, rows = len(self.trace) + 1, self.source.rows
        tell = self.progress
        done = None if tell is None else (lambda at: tell(number, at, rows, self.gap))
        start = perf_counter()
        total = self.source.sweep(kernel, combine, done)
        self.trace.append(Pass(purpose, float("nan"), active, perf_counter() - start))
        return total

    def certify(self, certificate: float) -> None:
        """Note max g / r, which the last pass has found."""
        self.trace[-1] = replace(self.trace[-1], certificate=certificate)
        self.gap = certificate - 1


@dataclass(frozen=True)
class ReadingPlan:
    """How many rows to sample, to keep of a pass, and to begin with."""

    sample: int
    pool: int
    starters: int

    @classmethod
    def of(cls, source: Source) -> "ReadingPlan":
        """Return what pays for a table of this size, as far as its memory allows."""
        K, d = source.rows, source.columns
        corner, least, width = d * (d + 1) // 2, max(4 * d, 256), 8 * d
        budget = max(POOL_BYTES, 2 * corner * width)
        budget = budget if source.memory is None else min(budget, source.memory // 8)
        if budget < least * width:
            raise InputError(
                f"memory: {source.memory} bytes given; at least {8 * least * width} are needed to hold {least} rows of "
                f"{d} columns while a design is solved"
            )
        most = budget // width
        pool = min(max(K // POOL_SHARE, LEAST_POOL, 2 * corner), most)
        return cls(min(K, max(SAMPLE, 3 * corner), most), pool, max(2 * corner, 8 * d))
