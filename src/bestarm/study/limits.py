"""Bounds of what a log can hold."""

from bestarm.core import moments
from bestarm.numbers import LARGEST_VALUE
from bestarm.study.storage import Record

LARGEST = 10**8  # pulls: a plan names them one by one


def said(count: float, total: float, squares: float) -> Record:
    """Return what a log keeps of rewards told together: the value of one, successes, or sums."""
    if count == 1:
        return {"value": total}
    of_0_and_1 = total == squares and 0 <= total <= count and total == int(total)
    return (
        {"n": int(count), "successes": int(total)}
        if of_0_and_1
        else {"n": int(count), "sum": total, "squares": squares}
    )


def totals_of(one: Record) -> tuple[float, float, float]:
    """Return count, sum and sum of squares of a result, whatever is kept of it."""
    count, total, squares = moments(one)
    most = count * LARGEST_VALUE
    if not 0 < count <= LARGEST or not -most <= total <= most or not 0 <= squares <= most * LARGEST_VALUE:
        raise ValueError(f"{count!r} results with the sum {total!r} and squares {squares!r} cannot be")
    return count, total, squares
