"""Grids of parameters: every combination of their levels, of any type, numbers by logarithms where these are even."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

EVEN = 1.25  # largest step over smallest of what counts as evenly spaced: 1, 3, 10, 30 is, in logarithms


@dataclass(frozen=True)
class Given(Sequence[str]):
    """A column of values as they were given, each as text where somebody reads it."""

    values: Sequence[Any]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __getitem__(self, at: Any) -> Any:
        return self.texts[at]


def is_number(level: object) -> bool:
    """Return whether a level is a number: True is none."""
    return isinstance(level, Real) and not isinstance(level, bool)


def by_factor(levels: Sequence[Any]) -> bool:
    """Return whether numbers grow by a factor rather than by steps.

    >>> [by_factor(levels) for levels in ([0.01, 0.1, 1], [1, 3, 10, 30], [16, 32, 64], [1, 2, 3], [10, 100])]
    [True, True, True, False, False]
    """
    ordered = sorted(set(levels))
    if len(ordered) < 3 or ordered[0] <= 0 or not math.isfinite(ordered[-1]):
        return False
    return _uneven([math.log(level) for level in ordered]) <= EVEN < _uneven(ordered)


def _uneven(ordered: Sequence[float]) -> float:
    steps = [high - low for low, high in pairwise(ordered)]
    return float(max(steps) / min(steps))
