"""Bounds of what a log can hold, and totals of a result in any of its forms."""

from bestarm.numbers import LARGEST_VALUE
from bestarm.study.storage import Record

LARGEST = 10**8  # pulls: a plan names them one by one


def totals_of(one: Record) -> tuple[float, float, float]:
    """Return count, sum and sum of squares of a result in any of its forms."""
    count: float = one.get("n", 1)
    if one.get("value") is not None:
        total, squares = one["value"], one["value"] * one["value"]
    elif "successes" in one:
        total = squares = one["successes"]
    elif "squares" in one:
        total, squares = one["sum"], one["squares"]
    else:
        mean, deviation = one["mean"], one.get("sd") or 0.0
        total, squares = count * mean, count * mean * mean + (count - 1) * deviation * deviation
    most = count * LARGEST_VALUE
    if not 0 < count <= LARGEST or not -most <= total <= most or not 0 <= squares <= most * LARGEST_VALUE:
        raise ValueError(f"{count!r} results with the sum {total!r} and squares {squares!r} cannot be")
    return count, total, squares
