"""Intervals, all of 95 %: of a chance, and of a difference on the same replications."""

from typing import Any

import numpy as np

NORMAL = 1.959964  # 97.5 % quantile of the normal distribution


def wilson(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson (1927) for a chance.

    >>> [round(end, 4) for end in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    from scipy.stats import binomtest

    interval = binomtest(right, count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def paired(one: Any, two: Any) -> tuple[float, float, float]:
    """Return the mean difference of two outcomes on the same replications, and its 95 % interval."""
    difference = np.asarray(one, dtype=np.float64) - np.asarray(two, dtype=np.float64)
    middle = float(difference.mean())
    count = len(difference)
    half = NORMAL * float(difference.std(ddof=1)) / count**0.5 if count > 1 else float("inf")
    return middle, middle - half, middle + half
