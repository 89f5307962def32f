"""Bounds of what a log can hold."""

import math
from typing import TYPE_CHECKING

from bestarm.errors import InputError
from bestarm.numbers import LARGEST_VALUE
from bestarm.study.storage import Record
from bestarm.totals import moments

if TYPE_CHECKING:
    from bestarm.study.state import StudyState

LARGEST = 10**8  # pulls: a plan names them one by one


FAR = 1e6  # times their scatter: squares beyond it have lost six digits of it


def said(count: float, total: float, squares: float, scatter: float | None = None) -> Record:
    """Return what a log keeps of rewards told together: the value of one, successes, or sums.

    Where squares have lost the digits of the scatter, the deviation is said itself.
    """
    n = int(count)
    if n == 1:
        return {"value": total}
    if total == squares and 0 <= total <= count and total == int(total):
        return {"n": n, "successes": int(total)}
    if scatter is not None and squares > FAR * scatter:
        return {"n": n, "mean": total / n, "sd": math.sqrt(scatter / (n - 1))}
    return {"n": n, "sum": total, "squares": squares}


def totals_of(one: Record) -> tuple[float, float, float, float]:
    """Return count, sum, sum of squares and scatter of a result, whatever is kept of it."""
    count, total, squares, scatter = moments(one)
    most = count * LARGEST_VALUE
    if not 0 < count <= LARGEST or not -most <= total <= most or not 0 <= squares <= most * LARGEST_VALUE:
        raise ValueError(f"{count!r} results with the sum {total!r} and squares {squares!r} cannot be")
    return count, total, squares, scatter


def whole(state: "StudyState") -> None:
    """Refuse what needs all arms of a table that is read in blocks."""
    if state.rows is not None:
        raise InputError(
            f"study {state.name!r} has the {state.rows.rows:,} rows of a table that is read in blocks: no arm can be "
            "added, and no other study can be begun from it"
        )
