"""What `ask` writes: the next slice of the current round, or the next question of the policy. Nothing here writes."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from bestarm.errors import InputError
from bestarm.numbers import whole
from bestarm.study import plates
from bestarm.study.driver import Driver, PolicyFailed
from bestarm.study.plans import size_of
from bestarm.study.rounds import spread
from bestarm.study.state import CENT, StudyState
from bestarm.study.storage import Record

TROUBLES = 3  # failures of a policy after which arms are spread evenly


def records(driver: Driver, state: StudyState, n: int | None, more: Record) -> list[Record]:
    """Return the records that hand out up to `n` trials, or say that the policy is at its end or failed.

    None where all trials of the round are out, or nothing is left to ask.
    """
    most, plate = n or state.options["batch"], state.options["plate"]
    most = min(most, plate[0] * plate[1]) if plate and most else most
    if state.over:
        return []
    if state.round is not None:
        start, length = state.round.handed, len(state.round.plan)
        if n is None and _joins_the_next(state, most):
            return [{"kind": "close", "round": state.round.number}]
        taken: dict[str, Any] = {"kind": "ask", "round": state.round.number}
    else:
        try:
            taken = dict(driver.question(state, n))
        except PolicyFailed as failure:
            return [{"kind": "trouble", "why": f"policy failed: {failure}", "then": _then(state)}]
        if taken["kind"] != "ask":
            return [taken]
        start, length = 0, len(spread(taken["plan"]))
        size = size_of(state, n)
        taken |= {} if size == size_of(state) else {"batch": size}
    count = min(most or length, length - start)
    if state.round is not None:
        repeats = state.round.waiting() if _by_the_plate(state, n, more) else 0
        if not (count := _paid(state, state.round.coming(count, repeats))):
            stuck = start < length and not state.open_trials()
            return [{"kind": "close", "round": state.round.number}] if stuck else []
        taken |= {"repeats": min(repeats, count)} if repeats else {}
    wells = {"wells": more["wells"][:count]} if "wells" in more else {}
    if plate and not wells and "runner" not in more:
        wells = {"wells": plates.drawn(state, count), "plate": state.plate + 1}
    return [{**taken, "start": start, "first": state.handed + 1, "count": count, **more, **wells}]


def _by_the_plate(state: StudyState, n: int | None, more: Record) -> bool:
    """Return whether a plate or a batch is asked for, with which what failed is made again; runners try it last."""
    by_hand = n is None or state.options["plate"]
    return bool(state.options["batch"] and by_hand and "runner" not in more)


def _paid(state: StudyState, coming: Sequence[int]) -> int:
    """Return how many of the next pulls what is left pays for: a result that came late may have taken their price."""
    prices = accumulate(map(state.price, coming))
    return bisect_right(list(prices), state.left + (0.0 if state.cost is None else CENT * state.budget))


def _joins_the_next(state: StudyState, plate: int | None) -> bool:
    """Return whether only repeats of what failed are left, too few for a plate: they go with the next one."""
    now = state.round
    if now is None or plate is None or now.handed < now.length:
        return False
    left = len(now.plan) - now.handed
    return 0 < left <= plate // 2 and now.left == left


def _then(state: StudyState) -> str:
    """Return how to go on after the policy failed: anew, unless that has failed as well or nothing is known."""
    hopeless = state.stumbled or not state.total or len(state.troubles) + 1 >= TROUBLES
    return "evenly" if hopeless else "anew"


def lasting(runner: str | None, lease: float | None, wells: Sequence[str] | None) -> dict[str, Any]:
    """Return what an ask says beside its trials: who holds them, and where they are on a plate."""
    more: dict[str, Any] = {} if runner is None else {"runner": runner}
    if runner is not None and lease is not None:
        more["lease"] = lease
    if wells is not None:
        if not all(isinstance(well, str) for well in wells) or len(set(wells)) < len(wells):
            raise InputError(f"wells are texts, each once; given {list(wells)[:5]!r}")
        more["wells"] = list(wells)
    return more


def limit(n: object, wells: Sequence[str] | None) -> int | None:
    """Return how many trials are asked for at most."""
    most = None if n is None else whole(n, "the number of trials to ask for", least=1)
    return most if wells is None else min(most or len(wells), len(wells))
