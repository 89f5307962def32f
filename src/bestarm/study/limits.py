"""Bounds of what a log can hold."""

from bestarm.numbers import LARGEST_VALUE
from bestarm.study.storage import Record
from bestarm.totals import moments

LARGEST = 10**8  # pulls: a plan names them one by one


def totals_of(one: Record) -> tuple[float, float, float, float]:
    """Return count, sum, sum of squares and scatter of a result, whatever is kept of it."""
    count, total, squares, scatter = moments(one)
    most = count * LARGEST_VALUE
    if not 0 < count <= LARGEST or not -most <= total <= most or not 0 <= squares <= most * LARGEST_VALUE:
        raise ValueError(f"{count!r} results with the sum {total!r} and squares {squares!r} cannot be")
    return count, total, squares, scatter
